// A small SPIR-V assembler: enough for straight-line compute shaders over physical storage buffers.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace hierarchos {

class SpirvBuilder {
 public:
  using Id = uint32_t;

  // Types and constants; equal ones are one.
  Id type_void() { return global({19}); }
  Id type_bool() { return global({20}); }
  Id type_u32() { return global({21, 32, 0}); }
  Id type_i32() { return global({21, 32, 1}); }
  Id type_u64() { return global({21, 64, 0}); }
  Id type_u16() { return global({21, 16, 0}); }
  Id type_u8() { return global({21, 8, 0}); }
  Id type_f16() { return global({22, 16}); }
  Id type_f32() { return global({22, 32}); }
  Id type_vector(Id element, uint32_t n) { return global({23, element, n}); }
  Id type_pointer(uint32_t storage, Id type) { return global({32, storage, type}); }
  Id type_function(Id result) { return global({33, result}); }
  Id type_struct(const std::vector<Id>& members);  // a new one each time
  Id u32(uint32_t v) { return global_typed(43, type_u32(), {v}); }
  Id i32(int32_t v) { return global_typed(43, type_i32(), {static_cast<uint32_t>(v)}); }
  Id u64(uint64_t v) { return global_typed(43, type_u64(), {static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32)}); }
  Id f32(float v);
  Id variable(Id pointer_type, uint32_t storage);

  void capability(uint32_t c);
  void decorate(Id id, std::vector<uint32_t> words);
  void decorate_member(Id type, uint32_t member, std::vector<uint32_t> words);
  void interface(Id variable) { interface_.push_back(variable); }

  // Instructions of the one function.
  Id op(uint32_t opcode, Id type, std::vector<uint32_t> operands);      // with a result
  void op_void(uint32_t opcode, std::vector<uint32_t> operands);        // without
  Id label();                                                           // a new label's id, not yet placed
  Id ext(uint32_t instruction, Id type, std::vector<uint32_t> operands);  // GLSL.std.450

  // The module, with entry point "main" and this local size. `entry` is the function's id from begin_function.
  Id begin_function();
  // What of fp32 is kept, where the device promises it: signed zeros, infinities and NaNs; subnormal numbers.
  std::vector<uint32_t> finish(uint32_t local_size, bool preserve_special, bool preserve_subnormal);

 private:
  Id fresh() { return next_++; }
  Id global(std::vector<uint32_t> words);  // opcode, operands; the result id is inserted first
  Id global_typed(uint32_t opcode, Id type, std::vector<uint32_t> operands);
  static void put(std::vector<uint32_t>& to, uint32_t opcode, const std::vector<uint32_t>& operands);

  Id next_ = 1;
  Id glsl_ = 0, function_ = 0;
  std::vector<uint32_t> capabilities_, decorations_, globals_, body_;
  std::vector<Id> interface_;
  std::map<std::vector<uint32_t>, Id> known_;
};

}  // namespace hierarchos
