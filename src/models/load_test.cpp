// How a package's weights come to a device.
#include "models/load.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "quant/layout.h"

namespace hierarchos {
namespace {

// A processor with little memory free, on which nothing may be placed.
class FullBackend final : public Backend {
 public:
  BackendKind kind() const override { return BackendKind::Cpu; }
  DeviceInfo info() const override {
    DeviceInfo info = cpu_.info();
    info.memory_available = int64_t{3} << 20;
    return info;
  }
  std::unique_ptr<Buffer> allocate(int64_t, const std::string& name) override {
    throw Error(name + " was allocated all the same");
  }
  void upload(Address to, std::span<const std::byte> data) override { cpu_.upload(to, data); }
  void download(Address from, std::span<std::byte> data) override { cpu_.download(from, data); }
  void fill_zero(Address at, int64_t bytes) override { cpu_.fill_zero(at, bytes); }
  std::unique_ptr<Recording> record(const BoundProgram& program) override { return cpu_.record(program); }
  void run(Recording& recording, int times) override { cpu_.run(recording, times); }
  void wait() override {}

 private:
  CpuBackend cpu_;
};

// The file's 4.9 MiB of bf16 are twice that in fp32.
TEST(Load, WeightsThatDoNotFitAreRefusedFirst) {
  const models::LoadedModel model = models::load(HIERARCHOS_SOURCE_DIR "/examples/demo-model");
  FullBackend backend;
  Storehouse store(backend);
  try {
    models::upload_parameters(model, store);
    FAIL() << "accepted";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("weights need 10 MiB on the device, and 3 MiB are free"), std::string::npos)
        << e.what();
  }
}

// The demonstration model's file holds bf16: its matrices stay so, in groups of rows; norms, which are no matrices,
// become fp32. Without a choice, as for training, all are fp32.
TEST(Load, MatricesOfBf16StayOnTheCpu) {
  models::LoadedModel model = models::load(HIERARCHOS_SOURCE_DIR "/examples/demo-model");
  for (const models::TensorSpec& spec : models::expected_tensors(model.description))
    EXPECT_EQ(model.parameter_type(spec.name, spec.shape), Type(DType::F32, spec.shape)) << spec.name;
  CpuBackend backend;
  models::choose_weight_types(model, backend);
  for (const models::TensorSpec& spec : models::expected_tensors(model.description)) {
    const Type type = model.parameter_type(spec.name, spec.shape);
    const bool matrix = spec.shape.rank() == 2;
    EXPECT_EQ(type.dtype, matrix ? DType::BF16 : DType::F32) << spec.name;
    EXPECT_EQ(type.layout, matrix ? kRows16 : kRowMajor) << spec.name;
  }
}

}  // namespace
}  // namespace hierarchos
