#include <fmt/format.h>

#include "base/hash.h"
#include "graph/graph.h"

namespace hierarchos {

const Type& Value::type() const { return function->values[id].type; }
Graph& Value::graph() const { return function->graph(); }

ValueId Function::add_argument(Type type) {
  ValueId id = add_value(type, -1, static_cast<int32_t>(arguments.size()));
  arguments.push_back(id);
  return id;
}

ValueId Function::add_value(Type type, int32_t producer, int32_t output) {
  values.push_back({type, producer, output});
  return static_cast<ValueId>(values.size() - 1);
}

void Function::renumber() {
  for (auto& value : values) value.producer = -1;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t o = 0; o < nodes[n].outputs.size(); ++o) {
      values[nodes[n].outputs[o]].producer = static_cast<int32_t>(n);
      values[nodes[n].outputs[o]].output = static_cast<int32_t>(o);
    }
}

namespace {

void add_type(Hasher& h, const Type& type) {
  h.add(static_cast<uint64_t>(type.dtype));
  h.add(static_cast<uint64_t>(type.storage));
  h.add(static_cast<uint64_t>(type.layout));
  h.add(static_cast<uint64_t>(type.shape.rank()));
  for (int64_t d : type.shape.dims()) h.add(d);
  for (auto c : type.counts) h.add(static_cast<int64_t>(c));
}

}  // namespace

uint64_t Function::structural_hash() const {
  Hasher h;
  h.add(static_cast<uint64_t>(arguments.size()));
  for (ValueId a : arguments) {
    h.add(static_cast<uint64_t>(a));
    add_type(h, type_of(a));
  }
  for (const Node& node : nodes) {
    h.add(std::string_view(node.op->name));
    h.add(node.attrs.hash());
    h.add(static_cast<uint64_t>(node.body));
    h.add(static_cast<int64_t>(node.placement));
    for (ValueId v : node.inputs) h.add(static_cast<uint64_t>(v));
    h.add(static_cast<uint64_t>(node.outputs.size()));
    for (ValueId v : node.outputs) {
      h.add(static_cast<uint64_t>(v));
      add_type(h, type_of(v));
    }
  }
  for (ValueId r : results) h.add(static_cast<uint64_t>(r));
  return h.value();
}

bool Function::same_structure(const Function& other) const {
  if (arguments != other.arguments || results != other.results || nodes.size() != other.nodes.size() ||
      values.size() != other.values.size())
    return false;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].type != other.values[v].type) return false;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node &a = nodes[n], &b = other.nodes[n];
    if (a.op != b.op || a.body != b.body || a.placement != b.placement || a.inputs != b.inputs || a.outputs != b.outputs ||
        !(a.attrs == b.attrs))
      return false;
  }
  return true;
}

std::string Function::to_string() const {
  std::string out = fmt::format("{}(", name_);
  for (size_t i = 0; i < arguments.size(); ++i)
    out += fmt::format("{}%{}: {}", i ? ", " : "", arguments[i], type_of(arguments[i]).to_string());
  out += ")\n";
  for (const Node& node : nodes) {
    out += "  ";
    for (size_t i = 0; i < node.outputs.size(); ++i)
      out += fmt::format("{}%{}: {}", i ? ", " : "", node.outputs[i], type_of(node.outputs[i]).to_string());
    out += fmt::format(" = {}(", node.op->name);
    for (size_t i = 0; i < node.inputs.size(); ++i) out += fmt::format("{}%{}", i ? ", " : "", node.inputs[i]);
    out += ")";
    if (node.op->kind == OpKind::Control) out += " body " + graph_->function(node.body).name();
    if (!node.attrs.entries().empty()) out += " {" + node.attrs.to_string() + "}";
    if (!node.scope.empty()) out += "  # " + node.scope;
    out += "\n";
  }
  out += "  return";
  for (ValueId r : results) out += fmt::format(" %{}", r);
  return out + "\n";
}

}  // namespace hierarchos
