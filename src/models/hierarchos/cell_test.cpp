// One cell under scan against tools/hierarchos_cell_reference.py: 24 tokens, states and gradients.
#include "models/hierarchos/cell.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/autodiff.h"
#include "runtime/interpreter.h"
#include "runtime/ref_tensor.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

using nlohmann::json;

std::vector<uint64_t> stream(const std::string& name, size_t n) {
  std::vector<uint64_t> out;
  uint64_t state = fnv1a64(name);
  for (size_t i = 0; i < n; ++i) out.push_back(splitmix64(state));
  return out;
}

RefTensor draw(const std::string& name, Shape shape, double offset = 0, double scale = 1) {
  RefTensor t{Type(DType::F32, shape), {}};
  for (uint64_t z : stream(name, static_cast<size_t>(shape.elements()))) {
    const double u = static_cast<double>(static_cast<int64_t>(z >> 40) - (1 << 23)) / (1 << 23);
    t.data.push_back(static_cast<double>(static_cast<float>(offset + scale * u)));
  }
  return t;
}

struct CellCase {
  json reference;
  int64_t rows, width, head, tokens;
  std::map<std::string, RefTensor> leaves;
  std::vector<std::string> differentiated;  // leaves whose gradients are compared

  CellCase() {
    std::ifstream file(HIERARCHOS_TEST_DATA "/hierarchos_cell.json");
    reference = json::parse(file);
    rows = reference["rows"];
    width = reference["width"];
    head = reference["head"];
    tokens = reference["tokens"];
    for (const auto& [name, dims] : reference["shapes"].items()) {
      const Shape shape(dims.get<std::vector<int64_t>>());
      double offset = 0, scale = 0.5;
      if (shape.rank() == 2 && shape[0] > 1) scale = 1.5 / std::sqrt(static_cast<double>(shape[1]));
      if (name.rfind("x_", 0) == 0) {
        offset = 0.5;
        scale = 0.45;
      } else if (name == "w0") {
        offset = -2;
        scale = 2;
      } else if (name == "k_k" || name == "k_a" || (name.rfind("ln", 0) == 0 && name.find("weight") != std::string::npos)) {
        offset = 1;
        scale = 0.3;
      }
      leaves[name] = draw("cell:" + name, shape, offset, scale);
    }
    leaves["x"] = draw("cell:x", {tokens, rows, width}, 0, 2);
    leaves["mod"] = draw("cell:mod", {tokens, rows, 4 * width}, 1, 4);
    for (const char* s : {"tm", "cm", "v", "out"}) leaves[std::string("state.") + s] = draw(std::string("cell:state.") + s, {rows, width}, 0, 0.5);
    leaves["state.matrix"] = draw("cell:state.matrix", {rows, width / head, head, head}, 0, 0.5);
    for (const json& g : reference["grads"]) differentiated.push_back(g["name"].get<std::string>().substr(5));
  }

  // The cell over all tokens; outputs "y", "state.*", "loss" and "grad:NAME".
  std::shared_ptr<Graph> graph() const {
    auto graph = std::make_shared<Graph>();
    Graph& g = *graph;
    const auto leaf = [&](const std::string& name) { return g.parameter(name, leaves.at(name).type); };
    models::CellConfig config;
    config.width = width;
    config.head_size = head;
    const char* states[] = {"tm", "cm", "v", "out", "matrix"};
    std::vector<Value> carries;
    for (const char* s : states) carries.push_back(leaf(std::string("state.") + s));
    const auto out = g.scan("cell", tokens, carries, {leaf("x"), leaf("mod")}, [&](std::span<const Value> in) -> std::vector<Value> {
      const models::CellResult r = models::cell(config, leaf, in[5], {in[0], in[1], in[2], in[3], in[4]}, in[6]);
      return {r.state.tm, r.state.cm, r.state.v, r.state.out, r.state.matrix, r.y};
    });
    const auto weighted = [&](Value v, const std::string& seed) {
      return ops::sum(ops::mul(v, g.constant(to_host(draw("cell:seed." + seed, v.shape())))));
    };
    Value loss = weighted(out[5], "y");
    g.output("y", out[5]);
    for (int s = 0; s < 5; ++s) {
      loss = ops::add(loss, weighted(out[static_cast<size_t>(s)], states[s]));
      g.output(std::string("state.") + states[s], out[static_cast<size_t>(s)]);
    }
    g.output("loss", loss);
    std::vector<Value> wrt;
    for (const std::string& name : differentiated) wrt.push_back(leaf(name));
    const auto grads = gradients(loss, wrt);
    for (size_t i = 0; i < grads.size(); ++i) {
      EXPECT_TRUE(grads[i].has_value()) << differentiated[i];
      if (grads[i]) g.output("grad:" + differentiated[i], *grads[i]);
    }
    return graph;
  }

  // The worst relative error over everything the reference stores, by its eight projections.
  double worst(const std::function<std::vector<double>(const std::string&)>& get, std::string* name) const {
    double worst = 0;
    for (const char* list : {"results", "grads"})
      for (const json& entry : reference[list]) {
        const std::string key = entry["name"];
        const std::vector<double> ours = get(key);
        double error = 0;
        for (int k = 0; k < 8; ++k) {
          const auto signs = stream(key + "#" + std::to_string(k), ours.size());
          double proj = 0;
          for (size_t i = 0; i < ours.size(); ++i) proj += signs[i] >> 63 ? -ours[i] : ours[i];
          const double d = proj - entry["proj"][static_cast<size_t>(k)].get<double>();
          error += d * d / 8;
        }
        const double relative = std::sqrt(error) / std::max(entry["norm"].get<double>(), 1e-30);
        if (!(relative <= worst)) {
          worst = relative;
          *name = key;
        }
      }
    return worst;
  }
};

TEST(HierarchosCell, EqualsTheReferenceInFloat64) {
  const CellCase setup;
  const auto graph = setup.graph();
  Interpreter run(*graph);
  for (const auto& [name, value] : setup.leaves) run.set(name, value);
  run.run();
  EXPECT_NEAR(run.output("loss").data[0], setup.reference["loss"].get<double>(), 1e-9);
  std::string name;
  EXPECT_LT(setup.worst([&](const std::string& key) { return run.output(key).data; }, &name), 1e-11) << name;
}

TEST(HierarchosCell, RunsOnTheCpuInFloat32) {
  const CellCase setup;
  CpuBackend backend;
  auto store = std::make_shared<Storehouse>(backend);
  for (const auto& [name, value] : setup.leaves) store->upload(name, to_host(value));
  Session session(Program::compile(setup.graph(), backend), store);
  session.run();
  std::string name;
  EXPECT_LT(setup.worst([&](const std::string& key) { return session.output(key).to_doubles(); }, &name), 2e-5) << name;
}

}  // namespace
}  // namespace hierarchos
