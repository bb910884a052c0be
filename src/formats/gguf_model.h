// GGUF files as Hugging Face packages: configuration, tensor names and the order of their elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "formats/gguf.h"

namespace hierarchos::formats {

struct TensorInfo {
  DType dtype;
  Storage storage;
  Shape shape;
};

// A tensor of the file and what llama.cpp's converters did to the Hugging Face tensor that it was (conversion/*.py).
struct GgufTensor {
  enum class Change {
    None,
    RotationOrder,  // rows of each of `heads` heads put so that neighbours are rotated with each other
                    // (LlamaModel.permute)
    MinusOne,       // the file has weight + 1 (Gemma's norms)
    GroupedQkv,  // the file has all q, all k, all v; Hugging Face the q, k and v of each of `kv_heads` groups together
    Transposed,  // the file has [out, in]; Hugging Face [in, out] (GPT-2's Conv1D)
    Slice,       // entry `index` along the first axis (experts, norms a head)
  };
  std::string name;  // in the file
  Change change = Change::None;
  int64_t heads = 0, kv_heads = 0, index = 0;
};

// The Hugging Face tensor. Rows are moved whole, so blocks stay as they are; only Transposed and MinusOne decode them.
// DataError when the shape does not divide as the change asks.
HostTensor as_published(const HostTensor& tensor, const GgufTensor& how);
// Its type and shape, without touching values.
TensorInfo published_info(const GgufFile::Entry& entry, const GgufTensor& how);

struct GgufModel {
  nlohmann::json config;                      // what config.json would say
  nlohmann::json generation_config;           // null when the file says nothing beyond config
  std::map<std::string, GgufTensor> tensors;  // by Hugging Face's name
};

// UnsupportedError naming the architecture, key or tensor for what is not honoured; DataError for what is malformed.
GgufModel gguf_model(const GgufFile& file);

}  // namespace hierarchos::formats
