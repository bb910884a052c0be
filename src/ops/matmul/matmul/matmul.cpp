#include "ops/matmul/matmul/matmul.h"

#include <algorithm>
#include <array>

#include "graph/vjp.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

constexpr std::array kActivations = {"none", "silu", "gelu", "gelu_tanh", "relu", "relu2", "tanh", "sigmoid"};

bool computable(DType dtype) { return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16; }

// Checks one product x [.., M, K] · w [.., N, K]ᵀ.
void check_product(const InferContext& c, const Type& x, const Type& w, const char* which) {
  if (x.shape.rank() < 2 || w.shape.rank() < 2)
    c.fail("x{0} and w{0} are matrices, perhaps with leading batch axes; they have shapes {1} and {2}", which,
           x.shape.to_string(), w.shape.to_string());
  if (!x.plain()) c.fail("x{} must be plain, it is {}", which, x.to_string());
  if (!computable(x.dtype)) c.fail("x{} must be f32, f16 or bf16, it is {}", which, x.to_string());
  if (w.storage == Storage::Plain && !computable(w.dtype))
    c.fail("w{} must be f32, f16, bf16 or block-quantised, it is {}", which, w.to_string());
  if (x.shape.back() != w.shape.back())
    c.fail("x{0} has {1} columns, w{0} has {2}: both are K", which, x.shape.back(), w.shape.back());
  if (const int64_t block = block_elements(w.storage); x.shape.back() % block != 0)
    c.fail("w{} has {} columns, no multiple of the {} of a {} block", which, w.shape.back(), block, name_of(w.storage));
  if (w.shape.rank() == 2) return;
  bool same = x.shape.rank() == w.shape.rank();
  for (int a = 0; same && a + 2 < x.shape.rank(); ++a) same = x.shape[a] == w.shape[a];
  if (!same)
    c.fail("the batch axes of w{0} must be those of x{0} or absent; shapes are {1} and {2}", which, x.shape.to_string(),
           w.shape.to_string());
}

void check_vector(const InferContext& c, int at, int64_t n, const char* name) {
  if (at < 0) return;
  const Type& t = c.inputs[static_cast<size_t>(at)];
  if (t.shape != Shape{n} || !t.plain() || !computable(t.dtype))
    c.fail("{} must be floating [{}], it is {}", name, n, t.to_string());
}

std::vector<Type> infer(const InferContext& c) {
  const MatmulOperands at = matmul_operands(c.attrs);
  if (static_cast<int>(c.inputs.size()) != at.count)
    c.fail("the attributes ask for {} operands, there are {}", at.count, c.inputs.size());
  const std::string& combine = c.attrs.has("combine") ? c.attrs.s("combine") : std::string("sum");
  const std::string act = c.attrs.has("act") ? c.attrs.s("act") : "none";
  const int64_t products = c.attrs.i_or("products", 1);
  if (products != 1 && products != 2) c.fail("products is 1 or 2, not {}", products);
  if (combine != "sum" && combine != "gate") c.fail("combine is \"sum\" or \"gate\", not \"{}\"", combine);
  if (std::find(kActivations.begin(), kActivations.end(), act) == kActivations.end())
    c.fail("there is no activation \"{}\" in a product's epilogue", act);
  if (combine == "gate" && products != 2) c.fail("combine = \"gate\" needs two products");
  if (at.bias2 >= 0 && combine != "gate") c.fail("bias2 goes with combine = \"gate\" only");
  if (c.attrs.f_or("softcap", 0) < 0) c.fail("softcap must not be negative, it is {}", c.attrs.f("softcap"));
  if (c.attrs.f_or("softcap", 0) != 0 && combine == "gate") c.fail("softcap goes with combine = \"sum\" only");

  const Type& x1 = c.inputs[0];
  const Type& w1 = c.inputs[1];
  check_product(c, x1, w1, "1");
  const int64_t m = x1.shape[-2], n = w1.shape[-2], k1 = x1.shape.back();
  Shape shape = x1.shape;
  shape[-1] = n;
  if (products == 2) {
    const Type& x2 = c.inputs[static_cast<size_t>(at.x2)];
    const Type& w2 = c.inputs[static_cast<size_t>(at.w2)];
    check_product(c, x2, w2, "2");
    Shape second = x2.shape;
    second[-1] = w2.shape[-2];
    if (second != shape) c.fail("the products differ in shape: {} and {}", shape.to_string(), second.to_string());
  }
  if (at.row_scale >= 0) {
    const Type& t = c.inputs[static_cast<size_t>(at.row_scale)];
    const Shape rows(x1.shape.dims().first(static_cast<size_t>(x1.shape.rank() - 1)));
    if ((t.shape != Shape{m} && t.shape != rows) || !t.plain() || !computable(t.dtype))
      c.fail("row_scale must be floating {}, it is {}", rows.to_string(), t.to_string());
  }
  check_vector(c, at.norm_weight, k1, "norm_weight");
  check_vector(c, at.bias, n, "bias");
  check_vector(c, at.bias2, n, "bias2");
  if (at.residual >= 0) {
    const Type& t = c.inputs[static_cast<size_t>(at.residual)];
    if (t.shape != shape || !t.plain() || !computable(t.dtype))
      c.fail("residual must be floating {}, it is {}", shape.to_string(), t.to_string());
  }
  const auto out = static_cast<DType>(c.attrs.i_or("out_dtype", static_cast<int64_t>(x1.dtype)));
  if (!computable(out)) c.fail("out_dtype must be f32, f16 or bf16, not {}", name_of(out));
  return {Type(out, shape)};
}

Cost cost(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  const MatmulOperands at = matmul_operands(attrs);
  Cost total;
  const auto rows_by_columns = static_cast<double>(outputs[0].shape.elements());
  total.flops = 2 * rows_by_columns * static_cast<double>(inputs[0].shape.back());
  if (at.x2 >= 0)
    total.flops += 2 * rows_by_columns * static_cast<double>(inputs[static_cast<size_t>(at.x2)].shape.back());
  for (const Type& t : inputs) total.bytes += static_cast<double>(t.bytes());
  total.bytes += static_cast<double>(outputs[0].bytes());
  return total;
}

// Matrices with either of the last two axes contiguous; batch axes as they are. Rows that coincide (stride 0) are
// copied first: the tile kernels want a leading dimension.
bool accepts_strides(const Attrs& attrs, int input, const Shape& shape, std::span<const int64_t> strides) {
  const MatmulOperands at = matmul_operands(attrs);
  if (input != at.x1 && input != at.w1 && input != at.x2 && input != at.w2) return false;
  const int rank = shape.rank();
  if (rank < 2) return false;
  const int64_t rows = shape[-2], columns = shape[-1];
  const int64_t row_stride = strides[static_cast<size_t>(rank - 2)],
                column_stride = strides[static_cast<size_t>(rank - 1)];
  const bool by_rows =
      (columns <= 1 || column_stride == 1) && (rows <= 1 || row_stride >= std::max<int64_t>(columns, 1));
  const bool by_columns =
      (rows <= 1 || row_stride == 1) && (columns <= 1 || column_stride >= std::max<int64_t>(rows, 1));
  return by_rows || by_columns;
}

// [.., M, K] as [rows, K]
Value flat(Value x) { return x.shape().rank() == 2 ? x : reshape(x, Shape{x.shape().rows(), x.shape().back()}); }

Value product(Value x, Value w, double alpha, DType out) {
  MatmulSpec spec;
  spec.x1 = x;
  spec.w1 = w;
  spec.alpha = alpha;
  spec.out_dtype = out;
  return matmul(spec);
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  const MatmulOperands at = matmul_operands(c.attrs);
  const bool fused = c.attrs.s("act") != "none" || c.attrs.s("combine") != "sum" || c.attrs.f_or("softcap", 0) != 0 ||
                     at.row_scale >= 0 || at.norm_weight >= 0;
  if (fused)
    throw UnsupportedError(
        "matmul: the gradient of a fused product (activation, gate, softcap, norm) is not supported; take gradients "
        "before fusion");
  std::vector<std::optional<Value>> grads(c.inputs.size());
  if (!c.grads[0]) return grads;
  const Value dy = *c.grads[0];
  const auto operand = [&](int i) { return c.inputs[static_cast<size_t>(i)]; };
  const auto wanted = [&](int i) { return i >= 0 && c.wanted[static_cast<size_t>(i)]; };
  const auto pair = [&](int xi, int wi, double alpha) {
    const Value x = operand(xi), w = operand(wi);
    const bool shared = w.shape().rank() == 2;
    if (wanted(xi)) {
      if (w.type().storage != Storage::Plain)
        throw UnsupportedError(
            "matmul: the gradient through a {} weight needs the transposed blocks; dequantise it first (ops::cast of "
            "the "
            "weight to a plain type)",
            name_of(w.type().storage));
      grads[static_cast<size_t>(xi)] = product(dy, transpose(w), alpha, x.dtype());
    }
    if (wanted(wi)) {
      // A shared weight's gradient sums over all rows, so it leaves in fp32 whatever the compute type.
      const Value y = shared ? flat(dy) : dy, rows = shared ? flat(x) : x;
      grads[static_cast<size_t>(wi)] = product(transpose(y), transpose(rows), alpha, shared ? DType::F32 : w.dtype());
    }
  };
  pair(at.x1, at.w1, c.attrs.f_or("alpha", 1));
  if (at.x2 >= 0) pair(at.x2, at.w2, c.attrs.f_or("alpha2", 1));
  if (wanted(at.bias)) {
    const Value rows = flat(dy);
    grads[static_cast<size_t>(at.bias)] = sum(rows.dtype() == DType::F32 ? rows : cast(rows, DType::F32), 0, 1);
  }
  if (wanted(at.residual)) {
    const DType dtype = operand(at.residual).dtype();
    grads[static_cast<size_t>(at.residual)] = dy.dtype() == dtype ? dy : cast(dy, dtype);
  }
  return grads;
}

}  // namespace

MatmulOperands matmul_operands(const Attrs& attrs) {
  MatmulOperands at;
  int next = 2;
  if (attrs.i_or("products", 1) == 2) {
    at.x2 = next++;
    at.w2 = next++;
  }
  if (attrs.i_or("row_scale", 0)) at.row_scale = next++;
  if (attrs.i_or("norm_weight", 0)) at.norm_weight = next++;
  if (attrs.i_or("bias", 0)) at.bias = next++;
  if (attrs.i_or("bias2", 0)) at.bias2 = next++;
  if (attrs.i_or("residual", 0)) at.residual = next++;
  at.count = next;
  return at;
}

Value matmul(const MatmulSpec& spec) {
  std::vector<Value> inputs = {spec.x1, spec.w1};
  Attrs attrs{{"products", int64_t{1}}, {"combine", spec.combine}, {"act", spec.act}, {"alpha", spec.alpha}};
  if (spec.x2.has_value() != spec.w2.has_value()) throw ShapeError("matmul: x2 and w2 come together");
  if (spec.x2) {
    attrs.set("products", int64_t{2}).set("alpha2", spec.alpha2);
    inputs.push_back(*spec.x2);
    inputs.push_back(*spec.w2);
  }
  const auto optional = [&](const std::optional<Value>& value, const char* name) {
    if (!value) return;
    attrs.set(name, int64_t{1});
    inputs.push_back(*value);
  };
  optional(spec.row_scale, "row_scale");
  optional(spec.norm_weight, "norm_weight");
  optional(spec.bias, "bias");
  optional(spec.bias2, "bias2");
  optional(spec.residual, "residual");
  if (spec.softcap != 0) attrs.set("softcap", spec.softcap);
  if (spec.norm_weight && spec.norm_offset != 0) attrs.set("norm_offset", spec.norm_offset);
  if (spec.out_dtype) attrs.set("out_dtype", static_cast<int64_t>(*spec.out_dtype));
  return spec.x1.graph().emit1(matmul_def(), std::move(inputs), std::move(attrs));
}

Value matmul(Value x, Value w) {
  MatmulSpec spec;
  spec.x1 = x;
  spec.w1 = w;
  return matmul(spec);
}

const OpDef& matmul_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "matmul";
    d.precision = Precision::Compute;
    d.infer = infer;
    d.vjp = vjp;
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
