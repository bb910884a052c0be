// What a device offers the runtime: memory, kernels that were compiled for given shapes, and recorded programs.
// Backends know nothing of operators: kernels are made by ops/ (ops/operator.h) and handed over.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/attrs.h"
#include "graph/op.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hierarchos {

enum class BackendKind : uint8_t { Cpu, Vulkan };

// How one operand of a kernel lies in memory. Strides are in elements and only differ from row-major where the
// operator accepts strided views. Results are always contiguous.
struct TensorDesc {
  DType dtype = DType::F32;
  Storage storage = Storage::Plain;
  LayoutId layout = kRowMajor;
  Shape shape;
  std::array<int64_t, Shape::kMaxRank> strides{};

  static TensorDesc contiguous(const Type& type);
  bool is_contiguous() const;  // extents of 1 are ignored
  int64_t bytes() const;       // of the contiguous tensor
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

// Everything a kernel may depend on. Kernels are made once for a distinct request and used for many operands.
struct KernelRequest {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

// A device address: a host pointer on the CPU, a buffer device address on Vulkan.
using Address = uint64_t;

class Kernel {
 public:
  virtual ~Kernel() = default;
  // What `explain` and reports of lost devices print: "matmul_64x64 f32".
  virtual std::string name() const = 0;
  // Working memory that one execution needs; its address comes after those of the results.
  virtual int64_t scratch_bytes() const { return 0; }
  // Dispatches that must follow one another inside the kernel (1 for most; 0 on the CPU counts as 1).
  virtual int dependent_dispatches() const { return 1; }
};

// One kernel over its operands' addresses: inputs, results, scratch (if it asked for some).
struct BoundStep {
  const Kernel* kernel = nullptr;
  uint32_t first_operand = 0;  // index into BoundProgram::operands
  uint16_t inputs = 0;
  uint16_t outputs = 0;
  uint16_t operands = 0;  // inputs, outputs and perhaps scratch
  bool barrier_before = false;  // waits for all steps since the last barrier
  bool split_before = false;    // a submission may end here
  int32_t predicate = -1;       // index into BoundProgram::predicates: runs only if that flag is not 0
  uint32_t label = 0;           // index into BoundProgram::labels: scope for errors, debug marks and breadcrumbs
};

struct BoundProgram {
  std::vector<BoundStep> steps;
  std::vector<Address> operands;
  std::vector<Address> predicates;  // addresses of I32 flags; nested predicates are combined by the planner
  std::vector<std::string> labels;
};

// A program in the form that the device replays.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Device memory; freed with the object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Address address() const = 0;
  virtual int64_t size() const = 0;
};

struct DeviceInfo {
  BackendKind kind = BackendKind::Cpu;
  std::string name;                // "AMD Radeon RX 7900 XT", "12-core x86 (AVX-512)"
  std::string driver;              // name and version
  int64_t memory_total = 0;        // bytes
  int64_t memory_available = 0;    // bytes that may be allocated now
  int64_t max_allocation = 0;      // bytes of one buffer
  uint64_t fingerprint = 0;        // hash of device, driver and everything that kernels' choice depends on
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual BackendKind kind() const = 0;
  virtual DeviceInfo info() const = 0;

  // Throws DeviceError stating need and have. `name` is for reports. Memory is not zeroed.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes, const std::string& name) = 0;
  // Blocking transfers; they wait for what was submitted before.
  virtual void upload(Address to, std::span<const std::byte> data) = 0;
  virtual void download(Address from, std::span<std::byte> data) = 0;
  virtual void fill_zero(Address at, int64_t bytes) = 0;

  // Alignment of every operand's address, in bytes.
  virtual int64_t alignment() const { return 256; }

  virtual std::unique_ptr<Recording> record(const BoundProgram& program) = 0;
  // Runs a recording `times` times in order and returns when the work is submitted (Vulkan) or done (CPU).
  virtual void run(Recording& recording, int times = 1) = 0;
  // Waits for all submitted work. Throws DeviceError naming the last kernel if the device was lost.
  virtual void wait() = 0;
};

}  // namespace hierarchos
