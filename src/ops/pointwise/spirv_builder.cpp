#include "ops/pointwise/spirv_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hierarchos {
namespace {

std::vector<uint32_t> text_words(std::string_view text) {
  std::vector<uint32_t> words(text.size() / 4 + 1, 0);
  std::memcpy(words.data(), text.data(), text.size());
  return words;
}

}  // namespace

void SpirvBuilder::put(std::vector<uint32_t>& to, uint32_t opcode, const std::vector<uint32_t>& operands) {
  to.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
  to.insert(to.end(), operands.begin(), operands.end());
}

SpirvBuilder::Id SpirvBuilder::global(std::vector<uint32_t> words) {
  auto found = known_.find(words);
  if (found != known_.end()) return found->second;
  const Id id = fresh();
  std::vector<uint32_t> operands = {id};
  operands.insert(operands.end(), words.begin() + 1, words.end());
  put(globals_, words[0], operands);
  known_.emplace(std::move(words), id);
  return id;
}

SpirvBuilder::Id SpirvBuilder::global_typed(uint32_t opcode, Id type, std::vector<uint32_t> operands) {
  std::vector<uint32_t> key = {opcode, type};
  key.insert(key.end(), operands.begin(), operands.end());
  auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  const Id id = fresh();
  operands.insert(operands.begin(), {type, id});
  put(globals_, opcode, operands);
  known_.emplace(std::move(key), id);
  return id;
}

SpirvBuilder::Id SpirvBuilder::f32(float v) { return global_typed(43, type_f32(), {std::bit_cast<uint32_t>(v)}); }

SpirvBuilder::Id SpirvBuilder::type_struct(const std::vector<Id>& members) {
  const Id id = fresh();
  std::vector<uint32_t> operands = {id};
  operands.insert(operands.end(), members.begin(), members.end());
  put(globals_, 30, operands);
  return id;
}

SpirvBuilder::Id SpirvBuilder::variable(Id pointer_type, uint32_t storage) {
  const Id id = fresh();
  put(globals_, 59, {pointer_type, id, storage});
  interface_.push_back(id);
  return id;
}

void SpirvBuilder::capability(uint32_t c) {
  if (std::find(capabilities_.begin(), capabilities_.end(), c) == capabilities_.end()) capabilities_.push_back(c);
}

void SpirvBuilder::decorate(Id id, std::vector<uint32_t> words) {
  words.insert(words.begin(), id);
  put(decorations_, 71, words);
}

void SpirvBuilder::decorate_member(Id type, uint32_t member, std::vector<uint32_t> words) {
  words.insert(words.begin(), {type, member});
  put(decorations_, 72, words);
}

SpirvBuilder::Id SpirvBuilder::op(uint32_t opcode, Id type, std::vector<uint32_t> operands) {
  const Id id = fresh();
  operands.insert(operands.begin(), {type, id});
  put(body_, opcode, operands);
  return id;
}

void SpirvBuilder::op_void(uint32_t opcode, std::vector<uint32_t> operands) { put(body_, opcode, operands); }

SpirvBuilder::Id SpirvBuilder::label() { return fresh(); }

SpirvBuilder::Id SpirvBuilder::ext(uint32_t instruction, Id type, std::vector<uint32_t> operands) {
  if (glsl_ == 0) glsl_ = fresh();
  operands.insert(operands.begin(), {glsl_, instruction});
  return op(12, type, std::move(operands));
}

SpirvBuilder::Id SpirvBuilder::begin_function() {
  const Id type = type_function(type_void());
  function_ = op(54, type_void(), {0, type});
  op_void(248, {fresh()});
  return function_;
}

std::vector<uint32_t> SpirvBuilder::finish(uint32_t local_size, bool preserve_special, bool preserve_subnormal) {
  if (preserve_subnormal) capability(4464);  // DenormPreserve
  if (preserve_special) capability(4466);  // SignedZeroInfNanPreserve
  op_void(253, {});  // return
  op_void(56, {});   // end of the function
  std::vector<uint32_t> out = {0x07230203, 0x00010500, 0, 0, 0};
  for (uint32_t c : capabilities_) put(out, 17, {c});
  if (glsl_) {
    std::vector<uint32_t> words = text_words("GLSL.std.450");
    words.insert(words.begin(), glsl_);
    put(out, 11, words);
  }
  put(out, 14, {5348, 1});  // PhysicalStorageBuffer64, GLSL450
  std::vector<uint32_t> entry = {5, function_};
  const auto name = text_words("main");
  entry.insert(entry.end(), name.begin(), name.end());
  entry.insert(entry.end(), interface_.begin(), interface_.end());
  put(out, 15, entry);
  put(out, 16, {function_, 17, local_size, 1, 1});
  if (preserve_special) put(out, 16, {function_, 4461, 32});
  if (preserve_subnormal) put(out, 16, {function_, 4459, 32});
  for (const auto* part : {&decorations_, &globals_, &body_}) out.insert(out.end(), part->begin(), part->end());
  out[3] = next_;
  return out;
}

}  // namespace hierarchos
