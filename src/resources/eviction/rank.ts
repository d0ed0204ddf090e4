import type { EvictionSignal } from '../../config/index.ts';
import { quantityValue } from '../../lib/index.ts';
import { type Pod, type PodUid, podRequests } from '../../pods/index.ts';
import { type DiskPart, diskParts } from './disk-layout.ts';
import type { DiskLayout, FilesUsage, PodResourceUsage } from './eviction-stats.ts';
import { resourceOf, type StarvedResource } from './observations.ts';

export interface RankInput {
  readonly signal: EvictionSignal;
  readonly layout: DiskLayout;
  readonly measures: ReadonlyMap<PodUid, PodResourceUsage>;
}

interface Standing {
  readonly pod: Pod;
  readonly priority: number;
  /** The usage of the starved resource; undefined without stats. */
  readonly usage: number | undefined;
  readonly request: number;
}

/** Returns the pods in eviction order; equal pods keep their order. */
export function rankPods(pods: readonly Pod[], input: RankInput): readonly Pod[] {
  const resource = resourceOf(input.signal);
  const order = resource === 'pids' ? byProcesses : byExcess;
  const all = pods.map((pod) => standingOf(pod, resource, input));
  return all.toSorted(order).map(({ pod }) => pod);
}

/** Pods cannot request PIDs, so only the priority and the number of processes count. */
function byProcesses(a: Standing, b: Standing): number {
  return a.priority - b.priority || unknownFirst(a, b) || (b.usage ?? 0) - (a.usage ?? 0);
}

function byExcess(a: Standing, b: Standing): number {
  return (
    unknownFirst(a, b) ||
    Number(isAbove(b)) - Number(isAbove(a)) ||
    a.priority - b.priority ||
    excess(b) - excess(a)
  );
}

function unknownFirst(a: Standing, b: Standing): number {
  return Number(b.usage === undefined) - Number(a.usage === undefined);
}

function isAbove({ usage, request }: Standing): boolean {
  return usage !== undefined && usage > request;
}

function excess({ usage = 0, request }: Standing): number {
  return usage - request;
}

function standingOf(pod: Pod, resource: StarvedResource, input: RankInput): Standing {
  const measures = input.measures.get(pod.metadata.uid);
  return {
    pod,
    priority: pod.spec.priority ?? 0,
    usage: measures && usageOf(pod, measures, resource, input),
    request: requestOf(pod, resource),
  };
}

function usageOf(
  pod: Pod,
  measures: PodResourceUsage,
  resource: StarvedResource,
  { signal, layout }: RankInput,
): number {
  if (resource === 'memory') return measures.memoryBytes ?? 0;
  if (resource === 'pids') return measures.processes ?? 0;
  const { bytes, inodes } = diskUsage(pod, measures, diskParts(signal, layout));
  return resource === 'inodes' ? inodes : bytes;
}

/** Returns the request of the pod in whole units; 0 for inodes, which cannot be requested. */
function requestOf(pod: Pod, resource: StarvedResource): number {
  const requested = podRequests(pod).get(resource);
  return requested === undefined ? 0 : Number(quantityValue(requested));
}

/** Returns the sum of the given parts of a pod's disk usage. */
export function diskUsage(pod: Pod, measures: PodResourceUsage, parts: readonly DiskPart[]): FilesUsage {
  const { containers, volumes } = measures;
  const has = (part: DiskPart) => parts.includes(part);
  const all = [
    ...(has('rootfs') ? containers.map(({ rootfs }) => rootfs) : []),
    ...(has('logs') ? containers.map(({ logs }) => logs) : []),
    ...(has('volumes') ? localVolumeNames(pod).map((name) => volumes.get(name)) : []),
  ].filter((part) => part !== undefined);
  return {
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    inodes: all.reduce((sum, { inodes }) => sum + inodes, 0),
  };
}

/** Returns the names of the volumes on the node's own file system. */
function localVolumeNames({ spec }: Pod): readonly string[] {
  return (spec.volumes ?? [])
    .filter(
      ({ hostPath, configMap, gitRepo, emptyDir }) =>
        hostPath !== undefined || configMap !== undefined || gitRepo !== undefined || isOnDisk(emptyDir),
    )
    .map(({ name }) => name);
}

function isOnDisk(emptyDir: { readonly medium?: string | undefined } | undefined): boolean {
  return emptyDir !== undefined && (emptyDir.medium ?? '') === '';
}
