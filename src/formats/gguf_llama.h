// GGUF files of the architecture "llama" as Hugging Face packages.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "formats/gguf.h"

namespace hierarchos::formats {

struct GgufModel {
  nlohmann::json config;             // what config.json would say
  nlohmann::json generation_config;  // null when the file says nothing beyond config
  struct Tensor {
    std::string name;           // in the file
    int64_t rotated_heads = 0;  // not 0: rows are ordered for rotating neighbours, head by head
  };
  std::map<std::string, Tensor> tensors;  // by Hugging Face's name
};

// UnsupportedError naming the architecture, key or tensor for what is not honoured; DataError for what is malformed.
GgufModel gguf_model(const GgufFile& file);

// The tensor with its rows as Hugging Face has them: the first half of a head is rotated with the second. Converters of
// llama.cpp reorder the rows of q and k (LlamaModel.permute) so that neighbours are rotated with each other. Rows are
// moved whole, so blocks stay as they are.
HostTensor undo_rotation_order(const HostTensor& tensor, int64_t heads);

}  // namespace hierarchos::formats
