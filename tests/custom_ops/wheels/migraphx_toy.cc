// A stand-in for MIGraphX's C interface: reads elementwise float32 graphs (Identity, Neg, Relu, Add, Mul)
// from ONNX and computes them on the host, between copies from and to the device on the caller's stream.
// Anything else is refused. Every object is leaked or freed as its owner asks; nothing here is fast.
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

extern "C" int hipMemcpyWithStream(void* to, const void* from, size_t bytes, int kind, void* stream);

namespace {

constexpr int kOk = 0, kRefused = 1, kFloat = 4, kOnnxFloat = 1;
constexpr int kHostToDevice = 1, kDeviceToHost = 2;
using Dims = std::vector<size_t>;

struct Shape {
  int type = kFloat;
  Dims dims, strides;
  explicit Shape(Dims given = {}) : dims(std::move(given)), strides(dims.size(), 1) {
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  }
  size_t elements() const {
    size_t count = 1;
    for (const size_t size : dims) count *= size;
    return count;
  }
};

struct Node {
  std::string op;
  std::vector<std::string> inputs, outputs;
  bool plain = true;
};

struct Argument {
  Shape shape;
  void* buffer;
};

struct Program {
  std::vector<Node> nodes;
  std::map<std::string, std::vector<float>> constants;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Shape> shapes;  // of every value
};

using Shapes = std::map<std::string, Shape>;  // parameters by name; outputs too
using Arguments = std::map<std::string, Argument>;
using Options = std::map<std::string, Dims>;  // shapes of inputs that the model leaves open

std::string output_name(size_t index) { return "main:#output_" + std::to_string(index); }

// ---- ONNX, as protobuf writes it
// -----------------------------------------------------------------------------

struct Bytes {
  const uint8_t *at, *end;
  std::string text() const { return {reinterpret_cast<const char*>(at), reinterpret_cast<const char*>(end)}; }
};

uint64_t varint(Bytes& from) {
  uint64_t value = 0;
  for (int shift = 0; from.at < from.end; shift += 7) {
    const uint8_t byte = *from.at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

void fields(Bytes message, const std::function<void(int, uint64_t, Bytes)>& visit) {
  while (message.at < message.end) {
    const uint64_t key = varint(message);
    uint64_t number = 0;
    Bytes inside{message.at, message.at};
    const int wire = static_cast<int>(key & 7);
    if (wire == 0) {
      number = varint(message);
    } else {
      const uint64_t bytes = wire == 2 ? varint(message) : wire == 1 ? 8 : 4;
      inside = {message.at, message.at + bytes};
      message.at += bytes;
    }
    visit(static_cast<int>(key >> 3), number, inside);
  }
}

Bytes member(Bytes message, int wanted) {
  Bytes found{nullptr, nullptr};
  fields(message, [&](int field, uint64_t, Bytes inside) {
    if (field == wanted) found = inside;
  });
  return found;
}

// False for a value that is no float tensor. A dimension that is left open is 1, as MIGraphX has it.
bool read_value(Bytes info, std::string& name, Dims& dims) {
  name = member(info, 1).text();
  uint64_t type = 0;
  fields(member(member(info, 2), 1), [&](int field, uint64_t number, Bytes inside) {
    if (field == 1) type = number;
    if (field == 2)
      fields(inside, [&](int, uint64_t, Bytes dim) {
        size_t size = 1;
        fields(dim, [&](int which, uint64_t value, Bytes) {
          if (which == 1) size = value;
        });
        dims.push_back(size);
      });
  });
  return type == kOnnxFloat;
}

void read_constant(Bytes tensor, Program& program) {
  std::string name;
  std::vector<float> values;
  Dims dims;
  fields(tensor, [&](int field, uint64_t number, Bytes inside) {
    if (field == 1 && inside.at == inside.end) dims.push_back(number);
    if (field == 1 && inside.at != inside.end)
      while (inside.at < inside.end) dims.push_back(varint(inside));
    if (field == 8) name = inside.text();
    if (field == 4 || field == 9) {
      const size_t count = static_cast<size_t>(inside.end - inside.at) / sizeof(float),
                   before = values.size();
      values.resize(before + count);
      std::memcpy(values.data() + before, inside.at, count * sizeof(float));
    }
  });
  program.shapes[name] = Shape(dims);
  program.constants[name] = values;
}

// Whether an attribute leaves windows that see one element at every element.
bool harmless(Bytes attribute) {
  const std::string name = member(attribute, 1).text();
  if (name != "kernel_shape" && name != "strides" && name != "pads") return true;
  const uint64_t wanted = name == "pads" ? 0 : 1;
  bool found = true;
  fields(attribute, [&](int field, uint64_t number, Bytes inside) {
    if (field != 8) return;
    if (inside.at == inside.end) found &= number == wanted;
    while (inside.at < inside.end) found &= varint(inside) == wanted;
  });
  return found;
}

Node read_node(Bytes message) {
  Node node;
  fields(message, [&](int field, uint64_t, Bytes inside) {
    if (field == 1) node.inputs.push_back(inside.text());
    if (field == 2) node.outputs.push_back(inside.text());
    if (field == 4) node.op = inside.text();
    if (field == 5) node.plain &= harmless(inside);
  });
  return node;
}

bool elementwise(const std::string& op) {
  for (const char* known : {"Neg", "Relu", "Add", "Mul", "MaxPool"})
    if (op == known) return true;
  return false;
}

Program* read_program(Bytes model, const Options& options) {
  Program program;
  bool understood = true;
  fields(member(model, 7), [&](int field, uint64_t, Bytes inside) {
    if (field == 1) program.nodes.push_back(read_node(inside));
    if (field == 5) read_constant(inside, program);
    if (field != 11 && field != 12) return;
    std::string name;
    Dims dims;
    understood &= read_value(inside, name, dims);
    (field == 11 ? program.inputs : program.outputs).push_back(name);
    if (field != 11) return;
    const auto given = options.find(name);
    program.shapes[name] = Shape(given != options.end() ? given->second : dims);
  });
  for (const Node& node : program.nodes) {
    understood &= elementwise(node.op) && node.plain;
    const Shape* widest = nullptr;
    for (const std::string& input : node.inputs)
      if (widest == nullptr || program.shapes[input].elements() > widest->elements())
        widest = &program.shapes[input];
    program.shapes[node.outputs[0]] = Shape(widest->dims);
  }
  return understood ? new Program(program) : nullptr;
}

// ---- running
// -------------------------------------------------------------------------------------------------

float apply(const std::string& op, float a, float b) {
  if (op == "Neg") return -a;
  if (op == "Relu") return a > 0 ? a : 0;
  if (op == "Add") return a + b;
  if (op == "Mul") return a * b;
  return a;
}

bool run(const Program& program, const Arguments& given, void* stream, std::vector<Argument>& outputs) {
  std::map<std::string, std::vector<float>> values = program.constants;
  for (const std::string& name : program.inputs) {
    const auto found = given.find(name);
    if (found == given.end()) return false;
    std::vector<float>& host = values[name];
    host.resize(program.shapes.at(name).elements());
    if (hipMemcpyWithStream(host.data(), found->second.buffer, host.size() * sizeof(float), kDeviceToHost,
                            stream) != 0)
      return false;
  }
  for (const Node& node : program.nodes) {
    const std::vector<float>&a = values[node.inputs[0]], &b = values[node.inputs.back()];
    std::vector<float> made(program.shapes.at(node.outputs[0]).elements());
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = apply(node.op, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
    values[node.outputs[0]] = made;
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const auto found = given.find(output_name(i));
    if (found == given.end()) return false;
    const std::vector<float>& host = values[program.outputs[i]];
    if (hipMemcpyWithStream(found->second.buffer, host.data(), host.size() * sizeof(float), kHostToDevice,
                            stream) != 0)
      return false;
    outputs.push_back(found->second);
  }
  return true;
}

}  // namespace

extern "C" {

// ---- shapes and arguments
// ------------------------------------------------------------------------------------
int migraphx_shape_create_scalar(Shape** made, int type) {
  *made = new Shape();
  (*made)->type = type;
  return kOk;
}
int migraphx_shape_destroy(Shape* shape) { return delete shape, kOk; }
int migraphx_shape_lengths(const size_t** values, size_t* count, const Shape* shape) {
  return *values = shape->dims.data(), *count = shape->dims.size(), kOk;
}
int migraphx_shape_strides(const size_t** values, size_t* count, const Shape* shape) {
  return *values = shape->strides.data(), *count = shape->strides.size(), kOk;
}
int migraphx_shape_type(int* type, const Shape* shape) { return *type = shape->type, kOk; }
int migraphx_shape_bytes(size_t* bytes, const Shape* shape) {
  return *bytes = shape->elements() * sizeof(float), kOk;
}
int migraphx_argument_create(Argument** made, const Shape* shape, void* buffer) {
  return *made = new Argument{*shape, buffer}, kOk;
}
int migraphx_argument_destroy(Argument* argument) { return delete argument, kOk; }
int migraphx_argument_shape(const Shape** shape, const Argument* argument) {
  return *shape = &argument->shape, kOk;
}
int migraphx_argument_buffer(char** buffer, const Argument* argument) {
  return *buffer = static_cast<char*>(argument->buffer), kOk;
}
int migraphx_arguments_size(size_t* count, std::vector<Argument>* all) { return *count = all->size(), kOk; }
int migraphx_arguments_get(const Argument** one, const std::vector<Argument>* all, size_t i) {
  return *one = &all->at(i), kOk;
}
int migraphx_arguments_destroy(std::vector<Argument>* all) { return delete all, kOk; }
int migraphx_shapes_size(size_t* count, std::vector<Shape>* all) { return *count = all->size(), kOk; }
int migraphx_shapes_get(const Shape** one, const std::vector<Shape>* all, size_t i) {
  return *one = &all->at(i), kOk;
}
int migraphx_shapes_destroy(std::vector<Shape>* all) { return delete all, kOk; }

// ---- options
// -------------------------------------------------------------------------------------------------
int migraphx_onnx_options_create(Options** made) { return *made = new Options, kOk; }
int migraphx_onnx_options_destroy(Options* options) { return delete options, kOk; }
int migraphx_onnx_options_set_input_parameter_shape(Options* options, const char* name, const size_t* dims,
                                                    size_t count) {
  return (*options)[name] = Dims(dims, dims + count), kOk;
}
int migraphx_onnx_options_set_external_data_path(Options*, const char*) { return kOk; }
int migraphx_compile_options_create(int** made) { return *made = new int, kOk; }
int migraphx_compile_options_destroy(int* options) { return delete options, kOk; }
int migraphx_compile_options_set_fast_math(int*, bool) { return kOk; }
int migraphx_compile_options_set_exhaustive_tune_flag(int*, bool) { return kOk; }
int migraphx_target_create(int** made, const char*) { return *made = new int, kOk; }
int migraphx_target_destroy(int* target) { return delete target, kOk; }

// ---- programs
// ------------------------------------------------------------------------------------------------
int migraphx_program_create(Program** made) { return *made = new Program, kOk; }
int migraphx_program_destroy(Program* program) { return delete program, kOk; }
int migraphx_parse_onnx_buffer(Program** made, const void* data, size_t bytes, const Options* options) {
  const auto* start = static_cast<const uint8_t*>(data);
  *made = read_program({start, start + bytes}, *options);
  return *made != nullptr ? kOk : kRefused;
}
int migraphx_program_compile(Program*, int*, int*) { return kOk; }
int migraphx_program_get_parameter_shapes(Shapes** made, const Program* program) {
  *made = new Shapes;
  for (const std::string& name : program->inputs) (**made)[name] = program->shapes.at(name);
  for (size_t i = 0; i < program->outputs.size(); ++i)
    (**made)[output_name(i)] = program->shapes.at(program->outputs[i]);
  return kOk;
}
int migraphx_program_get_output_shapes(std::vector<Shape>** made, const Program* program) {
  *made = new std::vector<Shape>;
  for (const std::string& name : program->outputs) (*made)->push_back(program->shapes.at(name));
  return kOk;
}
int migraphx_program_parameter_shapes_size(size_t* count, const Shapes* all) {
  return *count = all->size(), kOk;
}
int migraphx_program_parameter_shapes_get(const Shape** one, const Shapes* all, const char* name) {
  return *one = &all->at(name), kOk;
}
int migraphx_program_parameter_shapes_names(const char** names, const Shapes* all) {
  for (const auto& [name, shape] : *all) *names++ = name.c_str();
  return kOk;
}
int migraphx_program_parameter_shapes_destroy(Shapes* all) { return delete all, kOk; }
int migraphx_program_parameters_create(Arguments** made) { return *made = new Arguments, kOk; }
int migraphx_program_parameters_add(Arguments* all, const char* name, const Argument* one) {
  return all->insert_or_assign(name, *one), kOk;
}
int migraphx_program_parameters_destroy(Arguments* all) { return delete all, kOk; }
int migraphx_program_run_async(std::vector<Argument>** made, const Program* program, const Arguments* given,
                               void* stream, const char*) {
  *made = new std::vector<Argument>;
  return run(*program, *given, stream, **made) ? kOk : kRefused;
}

}  // extern "C"
