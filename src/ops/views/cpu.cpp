#include <algorithm>

#include "ops/cpu/kernel.h"
#include "ops/cpu/strided.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> concat_cpu(CpuBackend&, const KernelRequest& request) {
  const int axis = static_cast<int>(request.attrs.i("axis"));
  const Shape& shape = request.outputs[0].shape;
  const size_t size = size_of(request.outputs[0].dtype);
  int64_t inner = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];

  struct Part {
    cpu::Loops loops;
    int64_t run, begin;  // elements one after another in the result, where the first run begins
    int64_t first_task, step;
  };
  std::vector<Part> parts;
  int64_t begin = 0, tasks = 0;
  for (const TensorDesc& d : request.inputs) {
    Part p{cpu::Loops::over(d.shape, std::span(&d, 1)), d.shape[axis] * inner, begin, tasks, cpu::kTaskElements};
    begin += p.run;
    tasks += (p.loops.elements() + p.step - 1) / p.step;
    parts.push_back(std::move(p));
  }
  const int64_t row = begin;  // elements of the result a row of outer axes
  return cpu::make_kernel("concat", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    pool.parallel_for(tasks, [&](int64_t task, int) {
      size_t i = parts.size() - 1;
      while (parts[i].first_task > task) --i;
      const Part& p = parts[i];
      const int64_t first = (task - p.first_task) * p.step, last = std::min(p.loops.elements(), first + p.step);
      for (int64_t e = first; e < last;) {
        const int64_t outer = e / p.run, in_run = e % p.run, n = std::min(p.run - in_run, last - e);
        cpu::copy_elements(at[i], size, p.loops.dims, p.loops.strides[0], e, n,
                           at[parts.size()] + (outer * row + p.begin + in_run) * static_cast<int64_t>(size));
        e += n;
      }
    });
  });
}

}  // namespace hierarchos::ops
