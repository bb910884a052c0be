// hierarchos doctor: is everything here that the program needs, and does each device compute right?
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "base/os/cpu.h"
#include "base/os/memory.h"
#include "commands.h"
#include "graph/graph.h"
#include "nn/linear.h"
#include "ops/sampling/argmax/argmax.h"
#include "runner.h"
#include "runtime/device_choice.h"
#include "runtime/session.h"

namespace hierarchos::cli {
namespace {

struct Finding {
  enum class Kind { Good, Note, Bad } kind = Kind::Good;
  std::string what, result;
};

// A product that every model needs, and a choice: whole numbers, so that any right device gives the same.
std::string compute(Backend& backend) {
  constexpr int64_t kTokens = 5, kIn = 96, kOut = 130;
  const auto x = [](int64_t t, int64_t k) { return static_cast<float>((3 * t + 7 * k) % 11 - 5); };
  const auto w = [](int64_t n, int64_t k) { return static_cast<float>((5 * n + 2 * k) % 13 - 6); };
  std::vector<float> xs, ws;
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t k = 0; k < kIn; ++k) xs.push_back(x(t, k));
  for (int64_t n = 0; n < kOut; ++n)
    for (int64_t k = 0; k < kIn; ++k) ws.push_back(w(n, k));
  auto graph = std::make_shared<Graph>();
  nn::LinearWeights weights;
  weights.weight = graph->parameter("weight", Type(DType::F32, {kOut, kIn}));
  const Value y = nn::linear(graph->input("x", Type(DType::F32, {kTokens, kIn})), weights);
  graph->output("y", y);
  graph->output("best", ops::argmax(y));
  auto store = std::make_shared<Storehouse>(backend);
  store->get("weight", Type(DType::F32, {kOut, kIn}));
  store->upload("weight", HostTensor::from(DType::F32, {kOut, kIn}, ws));
  Session session(Program::compile(graph, backend), store);
  session.set_input("x", xs);
  session.run();
  const std::vector<double> got = session.output("y").to_doubles(), best = session.output("best").to_doubles();
  for (int64_t t = 0; t < kTokens; ++t) {
    int64_t largest = 0;
    std::vector<double> row;
    for (int64_t n = 0; n < kOut; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < kIn; ++k) sum += static_cast<double>(x(t, k)) * static_cast<double>(w(n, k));
      row.push_back(sum);
      if (sum > row[static_cast<size_t>(largest)]) largest = n;
      if (got[static_cast<size_t>(t * kOut + n)] != sum)
        return fmt::format("a product is {} instead of {}", got[static_cast<size_t>(t * kOut + n)], sum);
    }
    if (static_cast<int64_t>(best[static_cast<size_t>(t)]) != largest)
      return fmt::format("the largest is said to be at {}, not at {}", best[static_cast<size_t>(t)], largest);
  }
  return {};
}

Finding examine(const DeviceEntry& d) {
  const std::string what = fmt::format("{}, {}", d.name, d.info.name);
  if (!d.usable) return {Finding::Kind::Note, what, "not usable: " + d.note};
  try {
    const std::unique_ptr<Backend> backend = open_backend(d.name);
    const std::string wrong = compute(*backend);
    if (wrong.empty()) return {Finding::Kind::Good, what, "computes right"};
    return {Finding::Kind::Bad, what, "computes wrong: " + wrong + "; update its driver, or use another device"};
  } catch (const Error& e) {
    return {Finding::Kind::Bad, what, std::string(e.what())};
  }
}

std::vector<Finding> examine_all() {
  std::vector<Finding> findings;
  const HostMemory memory = host_memory();
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  findings.push_back({memory.available < (int64_t{1} << 30) ? Finding::Kind::Note : Finding::Kind::Good, "memory",
                      fmt::format("{:.1f} GiB, {:.1f} GiB free", gib(memory.total), gib(memory.available))});
  findings.push_back({Finding::Kind::Good, "cores", fmt::format("{}", usable_cores())});
  bool gpu = false;
  for (const DeviceEntry& d : list_devices()) {
    findings.push_back(examine(d));
    gpu = gpu || (d.usable && d.name != "cpu");
  }
  if (!gpu)
    findings.push_back({Finding::Kind::Note, "Vulkan",
                        "no device; models run on the CPU. For a GPU, install its driver with Vulkan 1.2 "
                        "and the loader (libvulkan.so.1)"});
  return findings;
}

void run(bool json) {
  std::vector<Finding> findings;
  {
    const Progress progress("Examining");
    findings = examine_all();
  }
  bool bad = false;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& f : findings) {
    const char* word = f.kind == Finding::Kind::Good ? "ok" : f.kind == Finding::Kind::Note ? "note" : "bad";
    bad = bad || f.kind == Finding::Kind::Bad;
    if (json)
      list.push_back({{"status", word}, {"what", f.what}, {"result", f.result}});
    else
      fmt::print("{:5} {}: {}\n", word, f.what, f.result);
  }
  if (json) print_json({{"version", HIERARCHOS_VERSION}, {"findings", list}});
  if (bad) throw Exit{kDevice};
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "Examine this computer: memory, devices, whether each computes right");
  command->add_flag("--json", *json, "as JSON");
  command->footer("The exit status is 0 if nothing is wrong, 5 if a device is.");
  command->callback([json] { run(*json); });
}

}  // namespace hierarchos::cli
