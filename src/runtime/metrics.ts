import type { MetricRegistry } from '../lib/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod } from '../pods/index.ts';

export type ContainerType = 'container' | 'init_container' | 'ephemeral_container';

/** Counts started sandboxes and containers, and image pulls. Never throws. */
export interface StartObserver {
  sandboxStarting(): void;
  sandboxFailed(): void;
  /** Observes the duration and outcome of a RunPodSandbox call. */
  runPodSandbox(runtimeHandler: string, ms: number, outcome: 'created' | 'failed'): void;
  /** Called for each attempt to start a container, except when back-off delays the start. */
  containerStarting(type: ContainerType): void;
  containerFailed(type: ContainerType, reason: string): void;
  /** Observes an image pull; `bytes` is undefined when the size is unknown. */
  imagePulled(ms: number, bytes: bigint | undefined): void;
}

export const unobservedStarts: StartObserver = {
  sandboxStarting() {},
  sandboxFailed() {},
  runPodSandbox() {},
  containerStarting() {},
  containerFailed() {},
  imagePulled() {},
};

const pullBuckets = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
/** The default histogram buckets of Prometheus. */
const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const mebibyte = 1n << 20n;
/** The image size classes, largest first: the metric label of each class and its lower bound. */
const imageSizes: readonly (readonly [string, bigint])[] = [
  ['GT100GB', 102_400n * mebibyte],
  ['60GB-100GB', 61_440n * mebibyte],
  ['40GB-60GB', 40_960n * mebibyte],
  ['30GB-40GB', 30_720n * mebibyte],
  ['20GB-30GB', 20_480n * mebibyte],
  ['10GB-20GB', 10_240n * mebibyte],
  ['5GB-10GB', 5_120n * mebibyte],
  ['1GB-5GB', 1_024n * mebibyte],
  ['500MB-1GB', 500n * mebibyte],
  ['100MB-500MB', 100n * mebibyte],
  ['10MB-100MB', 10n * mebibyte],
  ['0-10MB', 0n],
];

/** Registers the start metrics of the Go kubelet. */
export function startMetrics(registry: MetricRegistry): StartObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const pods = counter('kubelet_started_pods_total', 'Pod sandboxes started.');
  const podErrors = counter('kubelet_started_pods_errors_total', 'Pod sandboxes that failed to start.');
  const containers = registry.counter({
    name: 'kubelet_started_containers_total',
    help: 'Containers started, by type.',
    labels: ['container_type'],
  });
  const containerErrors = registry.counter({
    name: 'kubelet_started_containers_errors_total',
    help: 'Containers that failed to start, by type and reason.',
    labels: ['container_type', 'code'],
  });
  const pulls = registry.histogram({
    name: 'kubelet_image_pull_duration_seconds',
    help: 'Duration of image pulls by image size.',
    labels: ['image_size_in_bytes'],
    buckets: pullBuckets,
  });
  return {
    sandboxStarting: () => pods.inc(),
    sandboxFailed: () => podErrors.inc(),
    runPodSandbox: sandboxMetrics(registry),
    containerStarting: (container_type) => containers.with({ container_type }).inc(),
    containerFailed: (container_type, code) => containerErrors.with({ container_type, code }).inc(),
    imagePulled: (ms, bytes) => pulls.with({ image_size_in_bytes: imageSize(bytes) }).observe(ms / 1_000),
  };
}

/**
 * Registers the metrics of sandboxes, labelled by runtime handler, which is empty for the default
 * handler.
 */
function sandboxMetrics(registry: MetricRegistry): StartObserver['runPodSandbox'] {
  const labels = ['runtime_handler'] as const;
  const durations = registry.histogram({
    name: 'kubelet_run_podsandbox_duration_seconds',
    help: 'Duration of RunPodSandbox by runtime handler.',
    labels,
    buckets: requestBuckets,
  });
  const errors = registry.counter({
    name: 'kubelet_run_podsandbox_errors_total',
    help: 'Failed RunPodSandbox calls by runtime handler.',
    labels,
  });
  return (runtime_handler, ms, outcome) => {
    durations.with({ runtime_handler }).observe(ms / 1_000);
    if (outcome === 'failed') errors.with({ runtime_handler }).inc();
  };
}

export function containerTypeOf(pod: Pod, name: string): ContainerType {
  if (initContainersOf(pod).some((one) => one.name === name)) return 'init_container';
  if (ephemeralContainersOf(pod).some((one) => one.name === name)) return 'ephemeral_container';
  return 'container';
}

function imageSize(bytes: bigint | undefined): string {
  return imageSizes.find(([, above]) => bytes !== undefined && bytes > above)?.[0] ?? 'N/A';
}

const resizeBuckets = [
  10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000,
];

/** Registers the histogram of resize durations. */
export function resizeDurations(
  registry: MetricRegistry,
): (outcome: { readonly ms: number; readonly success: boolean }) => void {
  const durations = registry.histogram({
    name: 'kubelet_pod_resize_duration_milliseconds',
    help: 'Duration of in-place pod resizes in milliseconds.',
    labels: ['success'],
    buckets: resizeBuckets,
  });
  return ({ ms, success }) => durations.with({ success: `${success}` }).observe(ms);
}
