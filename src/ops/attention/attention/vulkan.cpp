// Which kernels attention gets: few tokens (decoding) go one by one to a kernel that is quick to answer, others by
// tiles of 16 rows (a query token and head). Where that gives few workgroups, keys are split over more and joined.
// Values (and keys, in the gradient) may have up to 256 channels.
#include "ops/attention/attention/attention.h"

#include <algorithm>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

// As in attention_common.slang.
struct Args {
  uint64_t q, k, v, ranges, segment, block_table, positions, alibi, bias_table, dense_bias, sinks, key_list;
  uint64_t out, lse, partial;
  uint64_t dout, delta, dq, dk, dv, dbias_table, ddense_bias, dsinks;
  int64_t q_t, q_h, k_s, k_h, v_s, v_h;
  uint32_t tokens, heads, kv_heads, group;
  uint32_t keys, width, width_v;
  uint32_t unit_tokens, units, tiles, splits;
  uint32_t page, blocks, table_heads, table_n, dense_heads, dense_keys, list_n, query_block, key_block;
  uint32_t four;
  float scale, softcap;
};

constexpr uint32_t kLargestHead = 256;
constexpr int64_t kFewTokens = 32;             // decoding: each token is a unit, since its keys are its own
constexpr int64_t kEnoughGroups = 256;         // for a large device
constexpr int64_t kEnoughDecodeGroups = 1024;  // their slices are short
constexpr int64_t kKeysOfSplit = 128;

// Everything that forward and backward say in the same way. `first`: index of q among the inputs.
struct Common {
  const KernelRequest& request;
  size_t first;
  AttentionOperands at = attention_operands(request.attrs);
  Args args{};
  uint32_t mode = 0;

  const TensorDesc& operand(int i) const { return request.inputs[first + static_cast<size_t>(i)]; }

  Common(const KernelRequest& r, size_t q) : request(r), first(q) {
    const Attrs& attrs = request.attrs;
    const TensorDesc &query = operand(at.q), &key = operand(at.k), &value = operand(at.v);
    args.tokens = narrow(request, query.shape[0]);
    args.heads = narrow(request, query.shape[1]);
    args.kv_heads = narrow(request, key.shape[1]);
    args.group = args.heads / std::max(args.kv_heads, 1u);
    args.keys = narrow(request, key.shape[0]);
    args.width = narrow(request, query.shape[2]);
    args.width_v = narrow(request, value.shape[2]);
    args.q_t = query.strides[0];
    args.q_h = query.strides[1];
    args.k_s = key.strides[0];
    args.k_h = key.strides[1];
    args.v_s = value.strides[0];
    args.v_h = value.strides[1];
    args.scale = static_cast<float>(attrs.f_or("scale", 1));
    args.softcap = static_cast<float>(attrs.f_or("softcap", 0));
    args.page = static_cast<uint32_t>(std::max<int64_t>(attrs.i_or("page", 0), 1));
    if (at.block_table >= 0) args.blocks = narrow(request, operand(at.block_table).shape[1]);
    if (at.bias_table >= 0) {
      args.table_heads = narrow(request, operand(at.bias_table).shape[0]);
      args.table_n = narrow(request, operand(at.bias_table).shape[1]);
    }
    if (at.dense_bias >= 0) {
      args.dense_heads = narrow(request, operand(at.dense_bias).shape[0]);
      args.dense_keys = narrow(request, operand(at.dense_bias).shape[2]);
    }
    const std::string& keys = attrs.s("keys");
    mode = keys == "blocks" ? 1 : keys == "indices" ? 2 : 0;
    args.query_block = static_cast<uint32_t>(std::max<int64_t>(attrs.i_or("query_block", 1), 1));
    args.key_block = static_cast<uint32_t>(std::max<int64_t>(attrs.i_or("key_block", 1), 1));
    if (at.key_list >= 0) args.list_n = narrow(request, operand(at.key_list).shape[1]);
    args.splits = 1;
    set_unit(mode == 0 ? args.tokens : mode == 1 ? args.query_block : 1);
  }

  // Channels that a kernel holds in registers or shared memory.
  void limit(uint32_t channels, const char* what) const {
    if (channels > kLargestHead)
      throw UnsupportedError("{}: {} has {} channels; the Vulkan kernel takes up to {}", request.op->name, what,
                             channels, kLargestHead);
  }

  // Tokens that share their list of keys.
  void set_unit(uint32_t tokens) {
    args.unit_tokens = std::max(tokens, 1u);
    args.units = static_cast<uint32_t>(groups_of(args.tokens, args.unit_tokens));
    args.tiles = static_cast<uint32_t>(groups_of(uint64_t{std::min(args.unit_tokens, args.tokens)} * args.group, 16));
  }

  std::array<uint32_t, 12> constants(uint32_t type_out, uint32_t type_dout) const {
    return {vulkan_type(request, operand(at.q)),
            vulkan_type(request, operand(at.k)),
            vulkan_type(request, operand(at.v)),
            type_out,
            type_dout,
            mode,
            args.softcap != 0,
            at.block_table >= 0,
            at.alibi >= 0,
            at.bias_table >= 0,
            at.dense_bias >= 0,
            at.sinks >= 0};
  }
};

// Fills in addresses of the forward's operands, which begin at operands[first].
struct Bind {
  AttentionOperands at;
  size_t first;
  int64_t size_q, size_k, size_v, size_dout = 4;

  Bind(const Common& c)
      : at(c.at),
        first(c.first),
        size_q(static_cast<int64_t>(size_of(c.operand(c.at.q).dtype))),
        size_k(static_cast<int64_t>(size_of(c.operand(c.at.k).dtype))),
        size_v(static_cast<int64_t>(size_of(c.operand(c.at.v).dtype))) {}

  void operator()(Args& args, std::span<const Address> operands) const {
    const auto address = [&](int i) { return i < 0 ? Address{0} : operands[first + static_cast<size_t>(i)]; };
    args.q = address(at.q);
    args.k = address(at.k);
    args.v = address(at.v);
    args.ranges = address(at.ranges);
    args.segment = address(at.segment);
    args.block_table = address(at.block_table);
    args.positions = address(at.positions);
    args.alibi = address(at.alibi);
    args.bias_table = address(at.bias_table);
    args.dense_bias = address(at.dense_bias);
    args.sinks = address(at.sinks);
    args.key_list = address(at.key_list);
    const auto fours = [](Address base, int64_t size, uint32_t width, int64_t outer, int64_t inner) {
      return width % 4 == 0 && outer % 4 == 0 && inner % 4 == 0 && base % static_cast<uint64_t>(4 * size) == 0;
    };
    args.four = (fours(args.q, size_q, args.width, args.q_t, args.q_h) ? 1u : 0u) |
                (fours(args.k, size_k, args.width, args.k_s, args.k_h) ? 2u : 0u) |
                (fours(args.v, size_v, args.width_v, args.v_s, args.v_h) ? 4u : 0u) |
                (fours(args.dout, size_dout, args.width_v, 0, 0) ? 8u : 0u);
  }
};

uint32_t width_class(uint32_t width) { return width <= 64 ? 64 : width <= 128 ? 128 : 256; }

}  // namespace

std::unique_ptr<Kernel> attention_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  Common common(request, 0);
  Args& args = common.args;
  common.limit(args.width_v, "v");
  if (common.mode == 0 && args.tokens <= kFewTokens) common.set_unit(1);
  const bool decode = args.unit_tokens == 1 && args.group <= 8 && args.width <= kLargestHead;
  if (decode) args.tiles = 1;
  const int64_t groups = int64_t{args.units} * args.tiles * args.kv_heads;
  int64_t capacity = args.blocks != 0 ? int64_t{args.blocks} * args.page : int64_t{args.keys};
  if (common.mode != 0) capacity = int64_t{args.list_n} * (common.mode == 1 ? args.key_block : 1);
  const int64_t enough = decode ? kEnoughDecodeGroups : kEnoughGroups;
  if (groups > 0 && groups < enough)
    args.splits = static_cast<uint32_t>(
        std::clamp<int64_t>(std::min(capacity / kKeysOfSplit, (enough + groups - 1) / groups), 1, 64));

  const auto shared = common.constants(vulkan_type(request, request.outputs[0]), 1);
  std::vector<uint32_t> constants(shared.begin(), shared.end());
  if (decode) constants.push_back(args.group);
  const std::string module =
      decode ? "attention/decode" : fmt::format("attention/forward_{}", width_class(args.width_v));
  const PipelineOptions options{.argument_buffer = true};
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", constants, options);
  const VulkanPipeline* combine =
      args.splits > 1 ? &backend.pipeline("attention/combine", "main", shared, options) : nullptr;
  auto kernel = std::make_unique<RecordedKernel>(module);
  if (args.splits > 1) {
    kernel->scratch = int64_t{args.tokens} * args.heads * args.splits * (args.width_v + 2) * 4;
    kernel->dependent = 2;
  }
  kernel->body = [=, bind = Bind(common), args = args](VulkanRecorder& recorder,
                                                       std::span<const Address> operands) mutable {
    bind(args, operands);
    const auto results = operands.subspan(static_cast<size_t>(bind.at.count));
    args.out = results[0];
    args.lse = results[1];
    args.partial = args.splits > 1 ? results[2] : 0;
    dispatch(recorder, *pipeline, args, uint64_t{args.units} * args.tiles * args.kv_heads * args.splits);
    if (args.splits == 1) return;
    recorder.barrier();
    dispatch(recorder, *combine, args, uint64_t{args.tokens} * args.heads);
  };
  return kernel;
}

std::unique_ptr<Kernel> attention_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  Common common(request, 3);
  const Args& args = common.args;
  common.limit(std::max(args.width, args.width_v), "k or v");
  if (common.at.block_table >= 0) throw UnsupportedError("attention_backward: a block table has no gradient");
  const auto constants =
      common.constants(vulkan_type(request, request.inputs[1]), vulkan_type(request, request.inputs[0]));
  const PipelineOptions options{.argument_buffer = true};
  const auto make = [&](const std::string& module) {
    return &backend.pipeline("attention/" + module, "main", constants, options);
  };
  const VulkanPipeline* delta = make("delta");
  const VulkanPipeline* dq = make(fmt::format("dq_{}", width_class(args.width)));
  const VulkanPipeline* dkv = make(fmt::format("dkv_{}", width_class(std::max(args.width, args.width_v))));
  const bool table = common.at.bias_table >= 0, dense = common.at.dense_bias >= 0, sinks = common.at.sinks >= 0;
  const VulkanPipeline* dtable = table ? make("table") : nullptr;
  const VulkanPipeline* ddense = dense ? make("dense") : nullptr;
  const VulkanPipeline* dsinks = sinks ? make("sinks") : nullptr;
  auto kernel = std::make_unique<RecordedKernel>(fmt::format("attention_backward_{}", width_class(args.width)));
  kernel->scratch = std::max<int64_t>(int64_t{args.tokens} * args.heads * 4, 4);
  kernel->dependent = 2;
  Bind bind(common);
  bind.size_dout = static_cast<int64_t>(size_of(request.inputs[0].dtype));
  kernel->body = [=, args = args](VulkanRecorder& recorder, std::span<const Address> operands) mutable {
    args.dout = operands[0];
    args.out = operands[1];
    args.lse = operands[2];
    bind(args, operands);
    auto results = operands.subspan(bind.first + static_cast<size_t>(bind.at.count));
    args.dq = results[0];
    args.dk = results[1];
    args.dv = results[2];
    size_t next = 3;
    if (table) args.dbias_table = results[next++];
    if (dense) args.ddense_bias = results[next++];
    if (sinks) args.dsinks = results[next++];
    args.delta = results[next];
    dispatch(recorder, *delta, args, uint64_t{args.tokens} * args.heads);
    recorder.barrier();
    dispatch(recorder, *dkv, args, groups_of(args.keys, 16) * args.kv_heads);
    dispatch(recorder, *dq, args, uint64_t{args.units} * args.tiles * args.kv_heads);
    if (table) dispatch(recorder, *dtable, args, uint64_t{args.table_heads} * args.table_n);
    if (dense)
      dispatch(recorder, *ddense, args, groups_of(uint64_t{args.dense_heads} * args.tokens * args.dense_keys, 64));
    if (sinks) dispatch(recorder, *dsinks, args, args.heads);
  };
  return kernel;
}

}  // namespace hierarchos::ops
