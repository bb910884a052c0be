// Reads a real GGUF file, if HIERARCHOS_SMOLLM2 names SmolLM2-135M-Instruct.Q4_1.gguf (tools/smollm2_reference.py says
// where it is), and compares with what the gguf package reads.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"
#include "formats/package.h"
#include "quant/blocks.h"

namespace hierarchos {
namespace {

TEST(SmolLm2, TensorsEqualReference) {
  const char* path = std::getenv("HIERARCHOS_SMOLLM2");
  if (!path) GTEST_SKIP() << "HIERARCHOS_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto package = formats::Package::open(path);
  const nlohmann::json reference = read_json_file(HIERARCHOS_TEST_DATA "/smollm2_tensors.json");
  ASSERT_EQ(reference["tensors"].size(), 7u);
  for (const nlohmann::json& row : reference["tensors"]) {
    const auto name = row["name"].get<std::string>();
    SCOPED_TRACE(name);
    const HostTensor tensor = dequantized(package->tensor(name));
    const auto shape = row["shape"].get<std::vector<int64_t>>();
    EXPECT_EQ(tensor.shape(), Shape(shape));
    const std::vector<double> values = tensor.to_doubles();
    double sum = 0, squares = 0, by_row = 0;  // the last sees the order of rows
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      squares += values[i] * values[i];
      by_row += static_cast<double>(i / static_cast<size_t>(shape[1])) * values[i];
    }
    const auto expected_squares = row["sum_of_squares"].get<double>();
    EXPECT_NEAR(squares, expected_squares, 1e-9 * expected_squares);
    EXPECT_NEAR(sum, row["sum"].get<double>(), 1e-9 * expected_squares);
    EXPECT_NEAR(by_row, row["sum_by_row"].get<double>(), 1e-9 * expected_squares * static_cast<double>(shape[0]));
    const auto first = row["first"].get<std::vector<double>>();
    ASSERT_GE(values.size(), first.size());
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(values[i], first[i]);
  }
}

}  // namespace
}  // namespace hierarchos
