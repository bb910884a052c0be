// hierarchos completion: scripts that complete commands and options in a shell, made from the commands themselves.
#include <fmt/format.h>

#include <memory>

#include "commands.h"

namespace hierarchos::cli {
namespace {

std::vector<CLI::App*> commands_of(const CLI::App& app) {
  std::vector<CLI::App*> out;
  for (CLI::App* command : const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; }))
    out.push_back(command);
  return out;
}

struct Spelling {
  std::vector<std::string> names;  // with their dashes
  std::string about;
  bool value = false;
};
std::vector<Spelling> options_of(CLI::App& command) {
  std::vector<Spelling> out;
  for (const CLI::Option* option : command.get_options()) {
    Spelling s;
    for (const std::string& name : option->get_snames()) s.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) s.names.push_back("--" + name);
    s.about = option->get_description();
    s.value = option->get_items_expected_max() > 0;
    if (!s.names.empty()) out.push_back(std::move(s));
  }
  return out;
}

// Inside '…' of a shell.
std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text;
}

void bash(const CLI::App& app) {
  std::string names, cases;
  for (CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string options;
    for (const Spelling& s : options_of(*command))
      for (const std::string& name : s.names) options += (options.empty() ? "" : " ") + name;
    cases += fmt::format("    {}) options='{}' ;;\n", command->get_name(), options);
  }
  fmt::print(R"(# hierarchos in bash: source <(hierarchos completion bash)
_hierarchos() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _hierarchos hierarchos
)",
             names, cases);
}

// Inside [ ] of zsh's _arguments.
std::string bracketed(const std::string& text) {
  std::string out;
  for (char c : quoted(text)) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

void zsh(const CLI::App& app) {
  fmt::print(
      "#compdef hierarchos\n# hierarchos in zsh: hierarchos completion zsh > a folder of "
      "$fpath/_hierarchos\n_hierarchos() {{\n"
      "  local -a commands\n  commands=(\n");
  for (CLI::App* command : commands_of(app))
    fmt::print("    '{}:{}'\n", command->get_name(), bracketed(command->get_description()));
  fmt::print(
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n");
  for (CLI::App* command : commands_of(app)) {
    fmt::print("    {})\n      _arguments \\\n", command->get_name());
    for (const Spelling& s : options_of(*command))
      for (const std::string& name : s.names)
        fmt::print("        '*{}[{}]{}' \\\n", name, bracketed(s.about), s.value ? ":value:_files" : "");
    fmt::print("        '*:file:_files'\n      ;;\n");
  }
  fmt::print(
      "  esac\n}}\n"
      "if [ \"$funcstack[1]\" = \"_hierarchos\" ]; then _hierarchos \"$@\"; else compdef _hierarchos hierarchos; fi\n");
}

void fish(const CLI::App& app) {
  fmt::print("# hierarchos in fish: hierarchos completion fish > ~/.config/fish/completions/hierarchos.fish\n");
  for (CLI::App* command : commands_of(app))
    fmt::print("complete -c hierarchos -n __fish_use_subcommand -f -a {} -d '{}'\n", command->get_name(),
               quoted(command->get_description()));
  for (CLI::App* command : commands_of(app))
    for (const Spelling& s : options_of(*command)) {
      std::string names;
      for (const std::string& name : s.names)
        names += (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      fmt::print("complete -c hierarchos -n '__fish_seen_subcommand_from {}'{}{} -d '{}'\n", command->get_name(), names,
                 s.value ? " -r" : "", quoted(s.about));
    }
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands and options in a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(R"(Examples:
  source <(hierarchos completion bash)
  hierarchos completion fish > ~/.config/fish/completions/hierarchos.fish)");
  command->callback([&app, shell] { (*shell == "bash" ? bash : *shell == "zsh" ? zsh : fish)(app); });
}

}  // namespace hierarchos::cli
