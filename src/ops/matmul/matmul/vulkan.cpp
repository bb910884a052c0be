// Which kernel a product gets: matvec for at most eight rows of x (decoding), else tiles of 128, 64 or 32, the largest
// that still gives a large device enough workgroups; a long sum over few tiles is split and added up in order. Operands
// in fp16 or bf16 go to cooperative matrices where the device has them. The choice depends on shapes, types and device only.
#include "ops/matmul/matmul/matmul.h"

#include <algorithm>
#include <array>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

// As in matmul_common.slang.
struct Args {
  uint64_t x1, w1, x2, w2, row_scale, norm_weight, bias, bias2, residual, y, partial;
  int64_t x1_row, x1_batch, w1_row, w1_batch, x2_row, x2_batch, w2_row, w2_batch, row_scale_batch;
  uint32_t m, n, k1, k2;
  float alpha, alpha2, softcap, norm_offset;
  uint32_t tiles_m, tiles_n, batches, splits;
  uint32_t k_slice, flags;
};
constexpr uint32_t kAlong[] = {1, 2, 4, 8}, kVec[] = {16, 32, 64, 128};  // x1, w1, x2, w2
constexpr int64_t kEnoughGroups = 96;
constexpr int64_t kRowsOfW = 4;  // a workgroup of matvec

uint32_t activation_number(const std::string& act) {
  constexpr std::array kNames = {"none", "silu", "gelu", "gelu_tanh", "relu", "relu2", "tanh", "sigmoid"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (act == kNames[i]) return static_cast<uint32_t>(i);
  throw UnsupportedError("matmul: no Vulkan kernel has the activation \"{}\"", act);
}

// One operand as a matrix with batch axes.
struct Matrix {
  int operand = -1;
  int64_t rows = 0, depth = 0, stride = 0;  // stride: of the axis that is not contiguous
  int64_t row_stride = 0;
  bool along = false;    // contiguous along rows
  int64_t size = 4;      // bytes an element; of block storage: bytes a block
  int64_t elements = 1;  // elements of that size: of a block
  bool blocks = false;
  std::vector<int64_t> batch;  // strides of batch axes, 0 where shared
};

Matrix matrix_of(const KernelRequest& request, int operand, size_t batch_axes) {
  const TensorDesc& t = request.inputs[static_cast<size_t>(operand)];
  Matrix m;
  m.operand = operand;
  const auto rank = static_cast<size_t>(t.shape.rank());
  m.rows = t.shape[-2];
  m.depth = t.shape[-1];
  m.along = m.depth > 1 && t.strides[rank - 1] != 1;
  m.row_stride = t.strides[rank - 2];
  m.stride = m.along ? t.strides[rank - 1] : t.strides[rank - 2];
  m.blocks = t.storage != Storage::Plain;
  m.size = m.blocks ? block_bytes(t.storage) : static_cast<int64_t>(size_of(t.dtype));
  m.elements = m.blocks ? block_elements(t.storage) : 1;
  for (size_t a = 0; a < batch_axes; ++a) m.batch.push_back(rank == 2 ? 0 : t.strides[a]);
  return m;
}

// Whether elements may be read `granule` at a time from an aligned address on.
bool vectors(const Matrix& m, int64_t granule, int64_t batch_stride) {
  const int64_t run = m.along ? m.rows : m.depth, lines = m.along ? m.depth : m.rows;
  return run % granule == 0 && (lines <= 1 || m.stride % granule == 0) && batch_stride % granule == 0;
}

// Whether cooperative matrices compute the product: operands of one 16-bit type, and no factor that would have to be
// applied to elements of x. At least a tile's worth of rows and columns, or most of it would be waste.
bool on_matrices(VulkanBackend& backend, const KernelRequest& request, const MatmulOperands& at, int64_t m, int64_t n) {
  const DType type = request.inputs[0].dtype;
  const bool have = (type == DType::F16 && backend.limits().matrices_f16) || (type == DType::BF16 && backend.limits().matrices_bf16);
  if (!have || at.norm_weight >= 0 || (at.row_scale >= 0 && at.x2 >= 0) || m < 16 || n < 16) return false;
  for (int operand : {at.x1, at.w1, at.x2, at.w2}) {
    if (operand < 0) continue;
    const TensorDesc& t = request.inputs[static_cast<size_t>(operand)];
    if (t.dtype != type || t.storage != Storage::Plain) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Kernel> matmul_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const MatmulOperands at = matmul_operands(attrs);
  const Shape& shape = request.outputs[0].shape;
  const auto batch_axes = static_cast<size_t>(shape.rank() - 2);
  const bool gate = attrs.s("combine") == "gate", two = at.x2 >= 0;
  std::vector<Matrix> matrices = {matrix_of(request, at.x1, batch_axes), matrix_of(request, at.w1, batch_axes)};
  if (two) {
    matrices.push_back(matrix_of(request, at.x2, batch_axes));
    matrices.push_back(matrix_of(request, at.w2, batch_axes));
  }
  int64_t m = shape[-2];
  const int64_t n = shape[-1];
  const int64_t scales = at.row_scale < 0 ? 0 : request.inputs[static_cast<size_t>(at.row_scale)].shape.elements();
  const bool scale_by_batch = scales != m;

  // Batch axes: those of one element go, neighbours that are one run are joined, and with shared weights they become
  // rows.
  std::vector<int64_t> extents;
  for (size_t a = 0; a < batch_axes; ++a) extents.push_back(shape[static_cast<int>(a)]);
  const auto drop = [&](size_t a) {
    extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(a));
    for (Matrix& matrix : matrices) matrix.batch.erase(matrix.batch.begin() + static_cast<std::ptrdiff_t>(a));
  };
  for (size_t a = extents.size(); a-- > 0;)
    if (extents[a] == 1) drop(a);
  for (size_t a = extents.size(); a-- > 1;) {
    bool one_run = true;
    for (const Matrix& matrix : matrices) one_run = one_run && matrix.batch[a - 1] == matrix.batch[a] * extents[a];
    if (!one_run) continue;
    extents[a] *= extents[a - 1];
    drop(a - 1);
  }
  if (!extents.empty() && (at.row_scale < 0 || scale_by_batch)) {
    bool rows = true;
    for (size_t i = 0; i < matrices.size(); ++i)
      rows =
          rows && (i % 2 == 1 ? matrices[i].batch.back() == 0 : matrices[i].batch.back() == m * matrices[i].row_stride);
    if (rows) {
      m *= extents.back();
      for (size_t i = 0; i < matrices.size(); i += 2) matrices[i].rows = m;
      drop(extents.size() - 1);
    }
  }
  const int64_t batches = extents.empty() ? 1 : extents.back();

  Args args{};
  args.m = narrow(request, m);
  args.n = narrow(request, n);
  args.k1 = narrow(request, matrices[0].depth);
  args.k2 = two ? narrow(request, matrices[2].depth) : 0;
  args.alpha = static_cast<float>(attrs.f_or("alpha", 1));
  args.alpha2 = static_cast<float>(attrs.f_or("alpha2", 1));
  args.softcap = static_cast<float>(attrs.f_or("softcap", 0));
  args.norm_offset = static_cast<float>(attrs.f_or("norm_offset", 0));
  args.batches = narrow(request, batches);
  args.splits = 1;
  args.k_slice = args.k1;
  args.row_scale_batch = scale_by_batch ? m : 0;
  int64_t Args::*const strides[] = {&Args::x1_row, &Args::w1_row, &Args::x2_row, &Args::w2_row};
  int64_t Args::*const batch_strides[] = {&Args::x1_batch, &Args::w1_batch, &Args::x2_batch, &Args::w2_batch};
  bool along_depth = true;
  for (size_t i = 0; i < matrices.size(); ++i) {
    args.*strides[i] = matrices[i].stride;
    args.*batch_strides[i] = extents.empty() ? 0 : matrices[i].batch.back();
    if (matrices[i].along) args.flags |= kAlong[i];
    along_depth = along_depth && !matrices[i].along;
  }

  const uint32_t constants[] = {
      vulkan_type(request, request.inputs[0]),
      vulkan_type_or_blocks(request, request.inputs[1]),
      vulkan_type_or_none(request, at.x2),
      two ? vulkan_type_or_blocks(request, request.inputs[static_cast<size_t>(at.w2)]) : 0,
      vulkan_type(request, request.outputs[0]),
      vulkan_type_or_none(request, at.norm_weight),
      vulkan_type_or_none(request, at.bias),
      vulkan_type_or_none(request, at.bias2),
      vulkan_type_or_none(request, at.residual),
      vulkan_type_or_none(request, at.row_scale),
      gate,
      activation_number(attrs.s("act")),
      args.softcap != 0,
      static_cast<uint32_t>(std::min<int64_t>(m, 8)),
  };
  const bool few_rows = m <= 8 && along_depth;
  // Both products are read alike; a gate's lie along k.
  const bool alike = !two || (matrices[0].along == matrices[2].along && matrices[1].along == matrices[3].along);
  const bool coop = !few_rows && alike && (!gate || along_depth) && on_matrices(backend, request, at, m, n);
  std::string module;
  int64_t partial_bytes = 0;
  if (few_rows) {
    module = args.k1 <= 1024 ? "matmul/matvec_64" : "matmul/matvec_128";
    args.tiles_m = 1;
    args.tiles_n = static_cast<uint32_t>((n + kRowsOfW - 1) / kRowsOfW);
  } else if (coop) {
    const auto tiles = [&](int64_t size) {
      return ((m + size - 1) / size) * ((n * (gate ? 2 : 1) + size - 1) / size) * batches;
    };
    const int64_t size = tiles(128) >= kEnoughGroups && m > 64 && n > 64 ? 128 : 64;
    const int64_t k = args.k1;
    if (tiles(size) < kEnoughGroups && !two && k >= 1024 && tiles(size) > 0) {
      const int64_t splits = std::min((2 * kEnoughGroups + tiles(size) - 1) / tiles(size), k / 256);
      args.k_slice = static_cast<uint32_t>(((k + splits - 1) / splits + 63) / 64 * 64);
      args.splits = static_cast<uint32_t>((k + args.k_slice - 1) / args.k_slice);
    }
    if (args.splits > 1) partial_bytes = batches * args.splits * m * n * 4;
    module = fmt::format("matmul/coop_{}_{}_{}", size, request.inputs[0].dtype == DType::F16 ? "f16" : "bf16",
                         gate ? "gate" : fmt::format("{}{}", matrices[0].along ? 'm' : 'k', matrices[1].along ? 'n' : 'k'));
    args.tiles_m = static_cast<uint32_t>((m + size - 1) / size);
    args.tiles_n = static_cast<uint32_t>((n * (gate ? 2 : 1) + size - 1) / size);
  } else {
    const auto tiles = [&](int64_t size) { return ((m + size - 1) / size) * ((n + size - 1) / size) * batches; };
    int64_t size = std::min(m, n) <= 32 ? 32 : 64;
    if (!gate && std::min(m, n) > 64 && tiles(128) >= kEnoughGroups) size = 128;
    const int64_t k = args.k1;
    if (tiles(size) < kEnoughGroups && !two && k >= 1024 && tiles(size) > 0) {
      args.splits = static_cast<uint32_t>(std::min((2 * kEnoughGroups + tiles(size) - 1) / tiles(size), k / 256));
      const int64_t slice = (k + args.splits - 1) / args.splits;
      args.k_slice = static_cast<uint32_t>((slice + 31) / 32 * 32);
      args.splits = static_cast<uint32_t>((k + args.k_slice - 1) / args.k_slice);
    } else if (size == 64 && tiles(64) < kEnoughGroups) {
      size = 32;
    }
    if (args.splits > 1) partial_bytes = batches * args.splits * m * n * 4;
    module = fmt::format("matmul/tile_{}", size);
    args.tiles_m = static_cast<uint32_t>((m + size - 1) / size);
    args.tiles_n = static_cast<uint32_t>((n + size - 1) / size);
  }

  const PipelineOptions options{.argument_buffer = true};
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", constants, options);
  // The gate on cooperative matrices reads x once; two operands that turn out to be different ones go to plain tiles.
  struct Fallback {
    VulkanBackend& backend;
    std::vector<uint32_t> constants;
    uint32_t tiles_m, tiles_n;
  };
  std::shared_ptr<Fallback> fallback;
  if (gate && coop)
    fallback = std::make_shared<Fallback>(Fallback{backend, {std::begin(constants), std::end(constants)},
                                                   static_cast<uint32_t>((m + 63) / 64), static_cast<uint32_t>((n + 63) / 64)});
  const VulkanPipeline* combine =
      args.splits > 1 ? &backend.pipeline("matmul/combine", "main", constants, options) : nullptr;
  auto kernel = std::make_unique<RecordedKernel>(fmt::format(
      "{} {}", module, matrices[1].blocks ? name_of(request.inputs[1].storage) : name_of(request.inputs[1].dtype)));
  if (m * n * batches == 0) return kernel;
  kernel->scratch = partial_bytes;
  kernel->dependent = args.splits > 1 ? 2 : 1;

  const int64_t granule = few_rows || coop ? 8 : 4;
  constexpr uint32_t kVecY = 256;
  std::array<uint64_t, 4> alignment{};  // of addresses, for reads of several elements; 0: element by element
  for (size_t i = 0; i < matrices.size(); ++i)
    if (matrices[i].blocks)
      alignment[i] = 2;
    else if (vectors(matrices[i], granule, args.*batch_strides[i]))
      alignment[i] = static_cast<uint64_t>(std::min<int64_t>(granule * matrices[i].size, 16));
  int64_t outer = 1;  // batch axes that are dispatches of their own
  for (size_t a = 0; a + 1 < extents.size(); ++a) outer *= extents[a];
  const int64_t y_size = static_cast<int64_t>(size_of(request.outputs[0].dtype));
  const auto size_of_input = [&](int i) {
    return i < 0 ? int64_t{0} : static_cast<int64_t>(size_of(request.inputs[static_cast<size_t>(i)].dtype));
  };
  const int64_t residual_size = size_of_input(at.residual), scale_size = size_of_input(at.row_scale);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> operands) {
    const auto address = [&](int i) { return i < 0 ? Address{0} : operands[static_cast<size_t>(i)]; };
    uint64_t Args::*const addresses[] = {&Args::x1, &Args::w1, &Args::x2, &Args::w2};
    for (int64_t o = 0; o < outer; ++o) {
      Args used = args;
      for (size_t i = 0; i < matrices.size(); ++i) {
        int64_t rest = o, offset = 0;
        for (size_t a = extents.empty() ? 0 : extents.size() - 1; a-- > 0; rest /= extents[a])
          offset += rest % extents[a] * matrices[i].batch[a];
        used.*addresses[i] =
            address(matrices[i].operand) + static_cast<uint64_t>(offset / matrices[i].elements * matrices[i].size);
        if (alignment[i] != 0 && used.*addresses[i] % alignment[i] == 0) used.flags |= kVec[i];
      }
      const int64_t plane = o * batches * m;
      used.row_scale = address(at.row_scale) + static_cast<uint64_t>(scale_by_batch ? plane * scale_size : 0);
      used.norm_weight = address(at.norm_weight);
      used.bias = address(at.bias);
      used.bias2 = address(at.bias2);
      used.residual = address(at.residual) + static_cast<uint64_t>(plane * n * residual_size);
      used.y = operands[static_cast<size_t>(at.count)] + static_cast<uint64_t>(plane * n * y_size);
      if (n % 4 == 0 && used.y % static_cast<uint64_t>(4 * y_size) == 0) used.flags |= kVecY;
      used.partial = used.splits > 1 ? operands[static_cast<size_t>(at.count) + 1] : 0;
      if (o > 0 && used.splits > 1) recorder.barrier();  // the scratch is used again
      const VulkanPipeline* chosen = pipeline;
      if (fallback && (used.x1 != used.x2 || used.x1_row != used.x2_row || used.x1_batch != used.x2_batch)) {
        chosen = &fallback->backend.pipeline("matmul/tile_64", "main", fallback->constants, options);
        used.tiles_m = fallback->tiles_m;
        used.tiles_n = fallback->tiles_n;
        used.flags &= ~kVecY;
      }
      dispatch(recorder, *chosen, used, uint64_t{used.tiles_m} * used.tiles_n * used.batches * used.splits);
      if (used.splits == 1) continue;
      recorder.barrier();
      dispatch(recorder, *combine, used, groups_of(static_cast<uint64_t>(batches * m * n), 256));
    }
  };
  return kernel;
}

}  // namespace hierarchos::ops
