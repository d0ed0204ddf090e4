export * from './api/index.ts';
export {
  type CallRule,
  type EventFault,
  type EventRule,
  type Fault,
  type FaultPlan,
  type FaultRates,
  noFaults,
  type PassingEvent,
  type RandomFaultOptions,
  randomFaults,
  type SimulatedMethod,
  scriptedFaults,
} from './faults.ts';
export {
  type MemoryFiles,
  type MemoryFilesOptions,
  memoryFiles,
  type OpenFile,
  realFiles,
  type SimulatedFiles,
} from './files.ts';
export type { Flavour } from './flavour.ts';
export type { SimulatedImage } from './image-store.ts';
export { type Latency, type LatencyStep, noLatency, typicalLatency } from './latency.ts';
export type { ScriptChooser } from './launch-plan.ts';
export { type SimulatorMutation, simulatorMutations } from './mutations.ts';
export type { ProcessEndCause } from './process.ts';
export type { RestartOptions } from './recovery.ts';
export { type ImageRegistry, type RegistryImage, registryOf, registryOfAnything } from './registry.ts';
export {
  type ContainerView,
  createSimulatedRuntime,
  type SandboxView,
  SimulatedRuntime,
  type SimulatedRuntimeOptions,
} from './runtime.ts';
export type { ContainerScript, ExecAnswer, ResourceUsage, ScriptedOutput } from './script.ts';
export type { Trace, TraceEntry, TraceKind } from './trace.ts';
