// docs/cpp.md: a fused model on the GPU from C++. A test builds and runs it.
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

// Logits of one prompt. Throws Ort::Exception, whose text says what was expected and what was found.
std::vector<float> logits(const char* model, const char* library, std::vector<int64_t> ids) {
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "example");
  env.RegisterExecutionProviderLibrary("zyfa", library);
  std::vector<Ort::ConstEpDevice> gpus;
  for (const Ort::ConstEpDevice& device : env.GetEpDevices())
    if (device.EpName() == std::string("ZyfaExecutionProvider")) gpus.push_back(device);
  gpus.resize(std::min<size_t>(gpus.size(), 1));

  Ort::SessionOptions options;
  options.RegisterCustomOpsLibrary(library);
  options.AppendExecutionProvider_V2(env, gpus,
                                     std::unordered_map<std::string, std::string>{{"precision", "bf16"}});
  Ort::Session session(env, model, options);

  const Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<int64_t> mask(ids.size(), 1);
  const std::vector<int64_t> shape = {1, static_cast<int64_t>(ids.size())};
  std::vector<Ort::Value> inputs;
  for (std::vector<int64_t>* values : {&ids, &mask})
    inputs.push_back(
        Ort::Value::CreateTensor<int64_t>(cpu, values->data(), values->size(), shape.data(), shape.size()));
  const char* input_names[] = {"input_ids", "attention_mask"};
  const char* output_names[] = {"logits"};
  const std::vector<Ort::Value> outputs =
      session.Run(Ort::RunOptions{}, input_names, inputs.data(), inputs.size(), output_names, 1);
  const float* first = outputs[0].GetTensorData<float>();
  return {first, first + outputs[0].GetTensorTypeAndShapeInfo().GetElementCount()};
}

}  // namespace

// How many logits there are, of which `most` are written; -1 and a line on standard error when it failed.
extern "C" __attribute__((visibility("default"))) int64_t zyfa_example(const char* model, const char* library,
                                                                       const int64_t* ids, int64_t count,
                                                                       float* out, int64_t most) {
  try {
    const std::vector<float> made = logits(model, library, {ids, ids + count});
    std::copy_n(made.begin(), std::min<size_t>(made.size(), static_cast<size_t>(most)), out);
    return static_cast<int64_t>(made.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
  }
}
