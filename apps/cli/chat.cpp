// hierarchos chat: a conversation.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/json.h"
#include "base/os/file.h"
#include "base/os/terminal.h"
#include "chat_format.h"
#include "commands.h"
#include "generate/generator.h"
#include "runner.h"
#include "settings_options.h"

namespace hierarchos::cli {
namespace {

struct Options {
  RunnerOptions runner;
  SettingsOptions settings;
  std::string system, load, template_file;
  std::vector<std::string> messages;
  int64_t context = 0;
  bool json = false;
};

constexpr const char* kHelp = R"(  /help            this
  /system TEXT     begin again with this system prompt
  /clear           begin again
  /retry           another answer to the last message
  /undo            forget the last message and its answer
  /history         show the conversation
  /save FILE       keep the conversation
  /load FILE       go on with one that was kept
  /exit            leave (so does Ctrl-D)
End a line with \ to go on in the next, or put several lines between two lines of """. Ctrl-C stops an answer,
or gives up what is being written.
)";

class Conversation {
 public:
  explicit Conversation(const std::string& system) { begin(system); }

  void begin(const std::string& system) {
    system_ = system;
    messages.clear();
    if (!system.empty()) messages.push_back({"system", system});
  }
  const std::string& system() const { return system_; }
  // Forgets the last message of the user and what came after it; gives it back.
  std::optional<std::string> undo() {
    const auto last =
        std::find_if(messages.rbegin(), messages.rend(), [](const Message& m) { return m.role == "user"; });
    if (last == messages.rend()) return std::nullopt;
    std::string text = last->content;
    messages.erase(last.base() - 1, messages.end());
    return text;
  }

  nlohmann::ordered_json to_json() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
    return {{"messages", list}};
  }
  void load(const std::string& path) {
    const nlohmann::json file = read_json_file(path);
    std::vector<Message> read;
    const bool list = file.is_object() && file.contains("messages") && file["messages"].is_array();
    if (!list) throw DataError("{}: no list \"messages\"; it is no conversation that /save wrote", path);
    for (const nlohmann::json& m : file["messages"]) {
      if (!m.is_object() || !m.contains("role") || !m["role"].is_string() || !m.contains("content") ||
          !m["content"].is_string())
        throw DataError("{}: message {} has no role and content that are texts", path, read.size());
      read.push_back({m["role"].get<std::string>(), m["content"].get<std::string>()});
    }
    messages = std::move(read);
    system_ = !messages.empty() && messages[0].role == "system" ? messages[0].content : "";
  }
  void save(const std::string& path) const {
    write_file_atomic(path, to_json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  std::vector<Message> messages;

 private:
  std::string system_;
};

class Chat {
 public:
  explicit Chat(const Options& o)
      : o_(o), runner_(load_runner(o.runner)), format_(runner_, o.template_file), conversation_(o.system) {
    const models::Description& d = runner_.model.description;
    settings_ = make_settings(o.settings, runner_, 1024);
    if (settings_.num_beams > 1)
      throw UserError("the package asks for beam search, which chat does not do: use --greedy or --temperature");
    if (const auto eos = runner_.tokenizer->eos();
        eos && !o.settings.ignore_eos && !std::ranges::count(settings_.eos_token_ids, *eos))
      settings_.eos_token_ids.push_back(*eos);
    generate::DecoderOptions options;
    options.context = o.context > 0 ? o.context : std::min<int64_t>(d.max_positions > 0 ? d.max_positions : 4096, 4096);
    options.parameter_type = runner_.parameter_type();
    decoder_ = std::make_unique<generate::Decoder>(d, runner_.store, options);
    if (!o.load.empty()) conversation_.load(o.load);
  }

  void run() {
    InterruptGuard interrupt;
    interrupt_ = &interrupt;
    interactive_ = o_.messages.empty() && is_terminal(StandardStream::In);
    quiet_ = o_.json;
    for (const std::string& message : o_.messages) say(message);
    if (o_.messages.empty()) {
      if (interactive_) fmt::print(stderr, "Say something; /help lists what else you can do, Ctrl-D leaves.\n");
      while (const auto text = read_message()) {
        try {
          if (text->starts_with("/") && interactive_) {
            if (!obey(*text)) break;
          } else if (text->find_first_not_of(" \t\n") != std::string::npos) {
            say(*text);
          }
        } catch (const Error& e) {
          // A conversation goes on; a script must know.
          if (!interactive_) throw;
          fmt::print(stderr, "{}\n", e.what());
        }
      }
    }
    if (o_.json) print_json(conversation_.to_json());
  }

 private:
  // False: leave.
  bool obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
    const auto file = [&] {
      if (rest.empty()) throw UserError("{} needs the name of a file", command);
      return rest;
    };
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      fmt::print(stderr, "{}", kHelp);
    } else if (command == "/clear") {
      conversation_.begin(conversation_.system());
    } else if (command == "/system") {
      conversation_.begin(rest);
    } else if (command == "/history") {
      for (const Message& m : conversation_.messages) fmt::print(stderr, "[{}] {}\n", m.role, m.content);
    } else if (command == "/save") {
      conversation_.save(file());
    } else if (command == "/load") {
      conversation_.load(file());
    } else if (command == "/undo") {
      if (!conversation_.undo()) throw UserError("there is nothing to forget");
    } else if (command == "/retry") {
      const auto text = conversation_.undo();
      if (!text) throw UserError("there is no message to answer");
      ++settings_.seed;
      say(*text);
    } else {
      throw UserError("{} is no command; /help lists them", command);
    }
    return true;
  }

  // A line, several joined by \, or what stands between """. Nothing at the end of the input, or when the user leaves.
  std::optional<std::string> read_message() {
    std::string text, line;
    bool block = false;
    for (bool first = true;; first = false) {
      if (interactive_) fmt::print(stderr, "{}", first ? "> " : ". ");
      std::fflush(stderr);
      if (!std::getline(std::cin, line)) {
        const bool interrupted = interrupt_->take();
        if (interactive_) fmt::print(stderr, "\n");
        std::cin.clear();
        std::clearerr(stdin);
        if (interrupted) return std::string();  // what was being written is given up
        return first || text.empty() ? std::nullopt : std::optional(text);
      }
      if (line == "\"\"\"") {
        if (block) return text;
        block = true;
        continue;
      }
      const bool more = block || line.ends_with('\\');
      if (!block && more) line.pop_back();
      text += line;
      if (!more) return text;
      text += '\n';
    }
  }

  void say(const std::string& text) {
    conversation_.messages.push_back({"user", text});
    generate::Request request;
    try {
      request.prompt = runner_.tokenizer->encode(format_.render(conversation_.messages), /*add_special=*/false);
      if (static_cast<int64_t>(request.prompt.size()) >= decoder_->context())
        throw UserError(
            "the conversation has {} tokens now, and the context holds {}: /clear it, or begin with a larger --context",
            request.prompt.size(), decoder_->context());
      request.settings = settings_;
      answer(request);
    } catch (...) {
      conversation_.messages.pop_back();
      throw;
    }
  }

  void answer(const generate::Request& request) {
    const auto show = [&](const std::string& text) {
      if (quiet_) return;
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
    const auto result = generate::generate(*decoder_, std::span(&request, 1), runner_.tokenizer.get(),
                                           [&](const generate::NewToken& token) {
                                             show(token.text);
                                             return !interrupt_->interrupted();
                                           })[0];
    show("\n");
    conversation_.messages.push_back({"assistant", result.text});
    if (interrupt_->take() && !interactive_) throw Exit{kInterrupted};
    if (result.reason == generate::FinishReason::Context && !quiet_)
      fmt::print(stderr, "(the context of {} tokens is full: /clear, or begin with a larger --context)\n",
                 decoder_->context());
  }

  const Options& o_;
  Runner runner_;
  ChatFormat format_;
  Conversation conversation_;
  generate::GenerationSettings settings_;
  std::unique_ptr<generate::Decoder> decoder_;
  InterruptGuard* interrupt_ = nullptr;
  bool interactive_ = false, quiet_ = false;
};

}  // namespace

void add_chat(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  add_runner_options(*command, o->runner);
  command->add_option("-s,--system", o->system, "system prompt")->type_name("TEXT");
  command->add_option("-p,--message", o->messages, "say this and leave; several follow one another")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--load", o->load, "go on with a conversation that /save wrote")->type_name("FILE");
  command->add_option("--chat-template", o->template_file, "file with a Jinja template, instead of the package's")
      ->type_name("FILE");
  command
      ->add_option("--context", o->context,
                   "most tokens of the conversation; the default is what the model was made for, at most 4096")
      ->check(CLI::Range(int64_t{16}, int64_t{1} << 24))
      ->type_name("N");
  command->add_flag("--json", o->json, "print the whole conversation as JSON at the end instead");
  add_settings_options(*command, o->settings, /*beams=*/false);
  command->footer(std::string(R"(Examples:
  hierarchos chat -m model.gguf
  hierarchos chat -m model.gguf -s "You are a pirate." -t 0.7
  hierarchos chat -m model.gguf -p "What is gravity?" --json
  hierarchos chat -m model.gguf < questions.txt          (a message a line)

In a conversation:
)") + kHelp);
  command->callback([o] { Chat(*o).run(); });
}

}  // namespace hierarchos::cli
