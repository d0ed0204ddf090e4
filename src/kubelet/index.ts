export type { BackgroundLoops } from './background.ts';
export { type CgroupDriverDeps, runtimeCgroupDriver } from './cgroup-driver.ts';
export { explainNode, explainPod } from './explain.ts';
export { FlightRecorder, type PodStory, type StoryEntry } from './flight-recorder.ts';
export { Kubelet } from './kubelet.ts';
export type { CredentialHost, KubeletDeps, NodeMachine } from './kubelet-deps.ts';
export type { KubeletEndpoints } from './kubelet-endpoints.ts';
export { type NodeEntry, type NodeEvent, NodeJournal, type NodeStory } from './node-journal.ts';
export { type RuntimeProblems, RuntimeState, type RuntimeWatch, watchRuntime } from './runtime-state.ts';
export {
  removeSandbox,
  type SelfCheckDeps,
  type SelfCheckPlan,
  selfCheck,
  selfCheckLabel,
} from './self-check.ts';
export type { KubeletSettings } from './settings.ts';
