#include <algorithm>
#include <cmath>
#include <random>

#include "ops/attention/attention/attention.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

struct Options {
  int64_t tokens = 5, keys = 7, heads = 4, kv_heads = 2, d = 8, dv = 8;
  DType dtype = DType::F32;
  std::string ranges = "causal";  // causal, window, segments, all, ragged (some empty)
  double softcap = 0;
  bool alibi = false, sinks = false;
  int64_t bias_heads = 0, bias_buckets = 0, dense_heads = 0;
  int64_t page = 0, segments = 0;  // block table
  std::string mode = "range";
  int64_t query_block = 0, key_block = 0, list = 0;
  bool fused_qkv = false;  // q, k, v are slices of one [T, (Hq + 2·Hk)·D] (then D = Dv, S = T)
};

std::vector<double> make_ranges(const Options& o, int64_t logical_keys) {
  std::vector<double> out;
  std::mt19937 random(5);
  for (int64_t t = 0; t < o.tokens; ++t) {
    const int64_t causal = std::min(logical_keys, logical_keys - o.tokens + t + 1);
    int64_t begin = 0, end = std::max<int64_t>(causal, 0);
    if (o.ranges == "window") begin = std::max<int64_t>(0, end - 5);
    if (o.ranges == "all") end = logical_keys;
    if (o.ranges == "segments") begin = std::min(end, t / 3 * 3);
    if (o.ranges == "ragged" && logical_keys > 0) {
      begin = static_cast<int64_t>(random() % static_cast<unsigned>(logical_keys));
      end =
          std::min<int64_t>(logical_keys, begin + static_cast<int64_t>(random() % static_cast<unsigned>(logical_keys)));
      if (t % 4 == 1) end = begin;
    }
    out.push_back(static_cast<double>(begin));
    out.push_back(static_cast<double>(end));
  }
  return out;
}

OpCase make(const std::string& name, const Options& o) {
  OpCase c;
  c.name = fmt::format("{} T={} S={} H={}/{} D={}/{} {}", name, o.tokens, o.keys, o.heads, o.kv_heads, o.d, o.dv,
                       name_of(o.dtype));
  const int64_t blocks = o.page ? (o.keys / std::max<int64_t>(o.page, 1)) / std::max<int64_t>(o.segments, 1) : 0;
  const int64_t logical_keys = o.page ? blocks * o.page : o.keys;
  std::mt19937 random(9);
  if (o.fused_qkv) {
    c.inputs.push_back(OpInput::normal(o.dtype, Shape{o.tokens, (o.heads + 2 * o.kv_heads) * o.d}));
  } else {
    c.inputs.push_back(OpInput::normal(o.dtype, Shape{o.tokens, o.heads, o.d}));
    c.inputs.push_back(OpInput::normal(o.dtype, Shape{o.keys, o.kv_heads, o.d}));
    c.inputs.push_back(OpInput::normal(o.dtype, Shape{o.keys, o.kv_heads, o.dv}));
  }
  c.inputs.push_back(OpInput::given(DType::I32, Shape{o.tokens, 2}, make_ranges(o, logical_keys)));
  if (o.page) {
    // Segments in runs of tokens; every page of the pool belongs to one segment, shuffled.
    std::vector<double> segment, table;
    for (int64_t t = 0; t < o.tokens; ++t) segment.push_back(static_cast<double>(t * o.segments / o.tokens));
    for (int64_t b = 0; b < blocks * o.segments; ++b) table.push_back(static_cast<double>(b));
    std::shuffle(table.begin(), table.end(), random);
    c.inputs.push_back(OpInput::given(DType::I32, Shape{o.tokens}, segment));
    c.inputs.push_back(OpInput::given(DType::I32, Shape{o.segments, blocks}, table));
  }
  if (o.alibi || o.bias_heads) {
    std::vector<double> positions;
    for (int64_t t = 0; t < o.tokens; ++t)
      positions.push_back(static_cast<double>(std::max<int64_t>(0, logical_keys - o.tokens) + t));
    c.inputs.push_back(OpInput::given(DType::I32, Shape{o.tokens}, positions));
  }
  if (o.alibi) c.inputs.push_back(OpInput::uniform(DType::F32, Shape{o.heads}, 0.05, 0.5).constant());
  if (o.bias_heads) c.inputs.push_back(OpInput::normal(DType::F32, Shape{o.bias_heads, o.bias_buckets}));
  if (o.dense_heads) c.inputs.push_back(OpInput::normal(DType::F32, Shape{o.dense_heads, o.tokens, logical_keys}));
  if (o.sinks) c.inputs.push_back(OpInput::normal(DType::F32, Shape{o.heads}));
  if (o.mode != "range") {
    // Distinct entries in each row, a few of them -1.
    const bool by_block = o.mode == "blocks";
    const int64_t rows = by_block ? (o.tokens + o.query_block - 1) / std::max<int64_t>(o.query_block, 1) : o.tokens;
    const int64_t names = by_block ? logical_keys / std::max<int64_t>(o.key_block, 1) + 1 : logical_keys;
    std::vector<double> all, list;
    for (int64_t i = 0; i < names; ++i) all.push_back(static_cast<double>(i));
    for (int64_t r = 0; r < rows; ++r) {
      std::shuffle(all.begin(), all.end(), random);
      for (int64_t i = 0; i < o.list; ++i)
        list.push_back(i < names && random() % 4 ? all[static_cast<size_t>(i)] : -1.0);
    }
    c.inputs.push_back(OpInput::given(DType::I32, Shape{rows, o.list}, list));
  }
  c.build = [o](Graph&, const std::vector<Value>& v) {
    AttentionSpec spec;
    size_t next = 0;
    if (o.fused_qkv) {
      const auto part = [&](int64_t first, int64_t count) {
        return slice(reshape(v[0], Shape{o.tokens, o.heads + 2 * o.kv_heads, o.d}), 1, first, first + count);
      };
      spec.q = part(0, o.heads);
      spec.k = part(o.heads, o.kv_heads);
      spec.v = part(o.heads + o.kv_heads, o.kv_heads);
      next = 1;
    } else {
      spec.q = v[next++];
      spec.k = v[next++];
      spec.v = v[next++];
    }
    spec.ranges = v[next++];
    spec.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(o.d, 1)));
    spec.softcap = o.softcap;
    if (o.page) {
      spec.segment = v[next++];
      spec.block_table = v[next++];
      spec.page = o.page;
    }
    if (o.alibi || o.bias_heads) spec.positions = v[next++];
    if (o.alibi) spec.alibi = v[next++];
    if (o.bias_heads) spec.bias_table = v[next++];
    if (o.dense_heads) spec.dense_bias = v[next++];
    if (o.sinks) spec.sinks = v[next++];
    spec.keys = o.mode;
    if (o.mode != "range") spec.key_list = v[next++];
    spec.query_block = o.query_block;
    spec.key_block = o.key_block;
    const AttentionResult result = attention(spec);
    return std::vector<Value>{result.out, result.lse};
  };
  c.tolerance = o.dtype == DType::F32 ? 5e-6 : o.dtype == DType::F16 ? 1e-3 : 6e-3;
  c.grad = !o.page;
  c.grad_results = {0};
  c.grad_results = {0};  // lse has no gradient
  return c;
}

OpCase error(const std::string& name, const std::string& text, const std::function<void(OpCase&)>& spoil,
             const Options& o = {}) {
  OpCase c = make(name, o);
  spoil(c);
  c.expect_error = text;
  return c;
}

}  // namespace

OP_CASES(attention) {
  // Shapes, on the path of few queries and on that of tiles: odd channels, groups, sizes around a block of keys.
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const auto& [t, s, hq, hk, d, dv] : std::vector<std::array<int64_t, 6>>{{1, 1, 1, 1, 1, 1},
                                                                                 {1, 9, 4, 2, 16, 16},
                                                                                 {5, 7, 4, 2, 8, 8},
                                                                                 {3, 300, 2, 1, 19, 33},
                                                                                 {40, 40, 6, 2, 16, 16},
                                                                                 {33, 129, 3, 3, 24, 8},
                                                                                 {70, 257, 9, 3, 8, 20},
                                                                                 {9, 9, 1, 1, 300, 5}}) {
      OpCase c =
          make("causal", {.tokens = t, .keys = s, .heads = hq, .kv_heads = hk, .d = d, .dv = dv, .dtype = dtype});
      if (t * s * hq > 4000) c.grad = dtype == DType::F32 && t > 30;
      cases.push_back(c);
    }
  for (const auto& [t, s] : std::vector<std::array<int64_t, 2>>{{0, 4}, {4, 0}, {0, 0}})
    cases.push_back(make("empty", {.tokens = t, .keys = s}));
  // More queries than keys: the first see nothing.
  cases.push_back(make("late", {.tokens = 30, .keys = 4}));
  for (const char* ranges : {"window", "segments", "all", "ragged"})
    for (int64_t t : {2, 37}) {
      Options o{.tokens = t, .keys = t, .ranges = ranges};
      cases.push_back(make(ranges, o));
      o.keys = t + 140;
      o.sinks = true;
      cases.push_back(make(fmt::format("{} sinks", ranges), o));
      o = {.tokens = t, .keys = t, .ranges = ranges, .fused_qkv = true};
      cases.push_back(make(fmt::format("{} slices of qkv", ranges), o));
    }

  // Every modifier, alone and together.
  for (int64_t t : {1, 6, 40}) {
    const Options plain{.tokens = t, .keys = t + 11, .heads = 4, .kv_heads = 2, .d = 12, .dv = 10, .ranges = "ragged"};
    const auto with = [&](const std::string& name, const std::function<void(Options&)>& change) {
      Options o = plain;
      change(o);
      cases.push_back(make(name, o));
    };
    with("softcap", [](Options& o) { o.softcap = 1.5; });
    with("alibi", [](Options& o) { o.alibi = true; });
    with("sinks", [](Options& o) { o.sinks = true; });
    with("shared bias table", [](Options& o) { o.bias_heads = 1, o.bias_buckets = 9; });
    with("bias table", [](Options& o) { o.bias_heads = 4, o.bias_buckets = 16; });
    with("shared dense bias", [](Options& o) { o.dense_heads = 1; });
    with("dense bias", [](Options& o) { o.dense_heads = 4; });
    for (const char* mode : {"range", "blocks", "indices"})
      with(fmt::format("everything, {}", mode), [mode](Options& o) {
        o.softcap = 2;
        o.alibi = o.sinks = true;
        o.bias_heads = 4;
        o.bias_buckets = 11;
        o.dense_heads = 1;
        o.mode = mode;
        o.list = 5;
        o.query_block = 4;
        o.key_block = 3;
      });
    for (const char* mode : {"blocks", "indices"})
      for (int64_t list : {1, 3, 20})
        with(fmt::format("{} of {}", mode, list), [=](Options& o) {
          o.mode = mode;
          o.list = list;
          o.query_block = 4;
          o.key_block = 2;
        });
    with("a group of 12", [](Options& o) { o.heads = 12, o.kv_heads = 1, o.mode = "indices", o.list = 6; });
  }

  // Paged keys: several segments in a tile, decoding and prefill, long enough to be split.
  for (DType dtype : {DType::F32, DType::BF16}) {
    cases.push_back(make("paged", {.tokens = 6, .keys = 48, .dtype = dtype, .page = 4, .segments = 3}));
    cases.push_back(make("paged prefill", {.tokens = 50, .keys = 120, .dtype = dtype, .page = 5, .segments = 2}));
    cases.push_back(make("paged decode", {.tokens = 2, .keys = 3200, .dtype = dtype, .page = 16, .segments = 2}));
    cases.push_back(make("long decode", {.tokens = 1, .keys = 5000, .heads = 3, .kv_heads = 1, .dtype = dtype}));
    Options o{.tokens = 1, .keys = 2100, .softcap = 3, .sinks = true, .page = 10, .segments = 1};
    o.alibi = true;
    o.dense_heads = 1;
    o.dtype = dtype;
    cases.push_back(make("paged, modified", o));
    o.mode = "indices";
    o.list = 300;
    cases.push_back(make("paged, indices", o));
  }
  for (OpCase& c : cases)
    if (c.inputs[0].type.shape.elements() > 2000) c.grad = false;

  cases.push_back(error("heads", "no multiple", [](OpCase&) {}, {.heads = 3, .kv_heads = 2}));
  cases.push_back(error("channels of k", "have 8 channels", [](OpCase& c) { c.inputs[1].type.shape[2] = 9; }));
  cases.push_back(error("rows of v", "rows and heads must agree", [](OpCase& c) { c.inputs[2].type.shape[0] = 6; }));
  cases.push_back(error("ranges", "ranges must be", [](OpCase& c) { c.inputs[3].type.shape[0] = 4; }));
  cases.push_back(
      error("buckets for other heads", "bias_table must be", [](OpCase&) {}, {.bias_heads = 3, .bias_buckets = 4}));
  cases.push_back(error("biases for other heads", "dense_bias must be", [](OpCase&) {}, {.dense_heads = 3}));
  cases.push_back(error("unknown keys", "keys is", [](OpCase&) {}, {.mode = "some", .list = 2}));
  cases.push_back(error("blocks of nothing", "needs query_block", [](OpCase&) {},
                        {.mode = "blocks", .query_block = 1, .key_block = 0, .list = 0}));
  cases.push_back(error("negative softcap", "softcap", [](OpCase&) {}, {.softcap = -1}));

  // A 135M Llama: decode, prefill and training; a longer cache, on one key head and on eight.
  for (DType dtype : {DType::F32, DType::BF16}) {
    const auto perf = [&](const std::string& name, Options o) {
      o.dtype = dtype;
      OpCase c = make(name + " perf", o);
      c.perf = true;
      c.grad = o.tokens > 1;
      cases.push_back(c);
    };
    perf("decode", {.tokens = 1, .keys = 512, .heads = 9, .kv_heads = 3, .d = 64, .dv = 64});
    perf("decode", {.tokens = 1, .keys = 16384, .heads = 32, .kv_heads = 8, .d = 64, .dv = 64});
    perf("decode", {.tokens = 1, .keys = 32768, .heads = 8, .kv_heads = 1, .d = 128, .dv = 128});
    perf("causal", {.tokens = 512, .keys = 512, .heads = 9, .kv_heads = 3, .d = 64, .dv = 64});
    perf("all", {.tokens = 1024, .keys = 1024, .heads = 9, .kv_heads = 3, .d = 64, .dv = 64, .ranges = "all"});
    perf("tiny", {.tokens = 24, .keys = 24, .heads = 4, .kv_heads = 2, .d = 16, .dv = 16});
  }
}

}  // namespace hierarchos::ops
