export type { BackgroundLoops } from './background.ts';
export { Kubelet } from './kubelet.ts';
export type { KubeletDeps, NodeMachine } from './kubelet-deps.ts';
export type { KubeletEndpoints } from './kubelet-endpoints.ts';
export type { KubeletSettings } from './settings.ts';
