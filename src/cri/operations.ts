import type { ImageServiceMethods, RuntimeServiceMethods } from './gen/runtime.ts';

export type CriMethods = RuntimeServiceMethods & ImageServiceMethods;
export type CriOperation = keyof CriMethods;

/** Operation names in metrics, as in the Go kubelet. */
export const operationNames: { readonly [Name in CriOperation]: string } = {
  version: 'version',
  runPodSandbox: 'run_podsandbox',
  stopPodSandbox: 'stop_podsandbox',
  removePodSandbox: 'remove_podsandbox',
  podSandboxStatus: 'podsandbox_status',
  listPodSandbox: 'list_podsandbox',
  streamPodSandboxes: 'stream_podsandboxes',
  createContainer: 'create_container',
  startContainer: 'start_container',
  stopContainer: 'stop_container',
  removeContainer: 'remove_container',
  listContainers: 'list_containers',
  streamContainers: 'stream_containers',
  containerStatus: 'container_status',
  updateContainerResources: 'update_container',
  reopenContainerLog: 'reopen_container_log',
  execSync: 'exec_sync',
  exec: 'exec',
  attach: 'attach',
  portForward: 'port_forward',
  containerStats: 'container_stats',
  listContainerStats: 'list_container_stats',
  streamContainerStats: 'stream_container_stats',
  podSandboxStats: 'podsandbox_stats',
  listPodSandboxStats: 'list_podsandbox_stats',
  streamPodSandboxStats: 'stream_podsandbox_stats',
  updateRuntimeConfig: 'update_runtime_config',
  status: 'status',
  checkpointContainer: 'checkpoint_container',
  getContainerEvents: 'get_container_events',
  listMetricDescriptors: 'list_metric_descriptors',
  listPodSandboxMetrics: 'list_podsandbox_metrics',
  streamPodSandboxMetrics: 'stream_podsandbox_metrics',
  runtimeConfig: 'runtime_config',
  updatePodSandboxResources: 'update_podsandbox_resources',
  listImages: 'list_images',
  streamImages: 'stream_images',
  imageStatus: 'image_status',
  pullImage: 'pull_image',
  removeImage: 'remove_image',
  imageFsInfo: 'image_fs_info',
};

/**
 * Deadline of a call, or undefined for none: pulls depend on the network, and a command without a
 * timeout may run forever.
 */
export function deadlineMs(
  operation: CriOperation,
  request: object,
  requestTimeoutMs: number,
): number | undefined {
  switch (operation) {
    case 'pullImage':
      return undefined;
    case 'runPodSandbox':
      return requestTimeoutMs * 2;
    case 'stopContainer':
    case 'checkpointContainer':
      return requestTimeoutMs + secondsOf(request) * 1_000;
    case 'execSync':
      return secondsOf(request) === 0 ? undefined : requestTimeoutMs + secondsOf(request) * 1_000;
    default:
      return requestTimeoutMs;
  }
}

function secondsOf(request: { readonly timeout?: unknown }): number {
  return Math.max(0, Number(request.timeout ?? 0n));
}
