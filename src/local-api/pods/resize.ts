import { isJsonObject, type JsonObject, sameValue } from '../../api/index.ts';
import type { Container, PodSpec, ResourceRequirements } from '../../kinds/index.ts';
import { computeQosClass, isSidecar, type Pod, qosClass } from '../../pods/index.ts';
import type { FieldCause, StoredObject } from '../api/index.ts';
import { forbiddenField, invalid } from '../validation/causes.ts';
import { typed, withFields } from './pod-object.ts';

/**
 * The resized pod: only resources and resize policies are taken from the request. If the number of
 * containers differs, the pod has the requested spec, which validation rejects.
 */
export function resizeUpdate(before: StoredObject, desired: JsonObject): StoredObject {
  const next = (isJsonObject(desired['spec']) ? desired['spec'] : {}) as unknown as PodSpec;
  const old = typed(before).spec;
  if (isOtherCount(old, next, 'containers') || isOtherCount(old, next, 'initContainers'))
    return { ...before, spec: next as unknown as JsonObject };
  const spec = withFields(old, {
    containers: resized(old.containers, next.containers ?? []),
    initContainers: old.initContainers && resized(old.initContainers, next.initContainers ?? []),
    resources: next.resources,
  });
  return { ...before, spec: spec as unknown as JsonObject };
}

type List = 'containers' | 'initContainers';

function isOtherCount(old: PodSpec, next: PodSpec, list: List): boolean {
  return (old[list] ?? []).length !== (next[list] ?? []).length;
}

/**
 * Containers that a resize request renames or reorders are taken over as requested, so that
 * validation rejects them.
 */
function resized(old: readonly Container[], next: readonly Container[]): readonly Container[] {
  if (old.some(({ name }, index) => next[index]?.name !== name)) return next;
  return old.map((container, index) => {
    const { resources, resizePolicy } = next[index] ?? {};
    return withFields(container, { resources, resizePolicy });
  });
}

/** Validates a resize of a pod; both versions are valid pods. */
export function resizeCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const [old, spec] = [typed(before).spec, typed(after).spec];
  const order = orderCauses(old, spec);
  const first = [
    ...classCauses(before, after),
    ...supportCauses(before),
    ...podLevelCauses(old, spec),
    ...order,
  ];
  if (order.length > 0) return first;
  return [
    ...first,
    ...listCauses(old, spec, 'initContainers'),
    ...listCauses(old, spec, 'containers'),
    ...initContainerCauses(old, spec),
  ];
}

function classCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const was = qosClass(before as unknown as Pod);
  if (was === computeQosClass(after as unknown as Pod)) return [];
  return [invalid('spec', was, 'Pod QOS Class may not change as a result of resizing')];
}

/**
 * Rejects a resize if the kubelet reports no container resources, because such a kubelet does not
 * support resize.
 */
function supportCauses({ status }: StoredObject): readonly FieldCause[] {
  const statuses = (status?.['containerStatuses'] ?? []) as readonly JsonObject[];
  const running = statuses.find(({ state }) => isJsonObject(state) && state['running'] !== undefined);
  if (running === undefined || running['resources'] !== undefined) return [];
  return [forbiddenField('spec', 'Pod running on node without support for resize')];
}

/** Validates changes of pod-level resources. */
function podLevelCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  if (old.resources === undefined && spec.resources === undefined) return [];
  if (old.resources !== undefined && spec.resources === undefined)
    return [forbiddenField('spec.resources', 'pod-level resources cannot be removed')];
  return [
    ...removedCauses(old.resources, spec.resources, 'spec.resources', 'pod-level resource'),
    ...(sameExceptCpuAndMemory(old.resources, spec.resources)
      ? []
      : [forbiddenField('spec', 'only cpu and memory resources are mutable at pod-level')]),
  ];
}

function orderCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  return (['containers', 'initContainers'] as const).flatMap((list) => {
    const [was, is] = [old[list] ?? [], spec[list] ?? []];
    if (was.length !== is.length)
      return [forbiddenField(`spec.${list}`, `${list} may not be added or removed on resize`)];
    return was.flatMap(({ name }, index) =>
      is[index]?.name === name
        ? []
        : [
            forbiddenField(
              `spec.${list}[${index}].name`,
              `${list} may not be renamed or reordered on resize`,
            ),
          ],
    );
  });
}

function listCauses(old: PodSpec, spec: PodSpec, list: List): readonly FieldCause[] {
  return (old[list] ?? []).flatMap((was, index) => {
    const { resources: is, resizePolicy } = spec[list]?.[index] ?? {};
    const field = `spec.${list}[${index}]`;
    return [
      ...removedCauses(was.resources, is, `${field}.resources`, 'resource'),
      ...(sameExceptCpuAndMemory(was.resources, is) && sameValue(was.resizePolicy, resizePolicy)
        ? []
        : [otherResourceCause(list, field)]),
    ];
  });
}

function otherResourceCause(list: List, field: string): FieldCause {
  return list === 'containers'
    ? forbiddenField('spec', 'only cpu and memory resources are mutable')
    : forbiddenField(field, 'only cpu and memory resources for init or sidecar containers are mutable');
}

/** An init container that has completed cannot restart for a resize. */
function initContainerCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  return (old.initContainers ?? []).flatMap((was, index) => {
    if (isSidecar(was) || sameValue(was, spec.initContainers?.[index])) return [];
    const restarting = (spec.initContainers?.[index]?.resizePolicy ?? []).filter(
      ({ restartPolicy }) => restartPolicy === 'RestartContainer',
    );
    return restarting.map(() =>
      forbiddenField(
        `spec.initContainers[${index}]`,
        'non-sidecar init containers with a resize policy of RestartContainer cannot be resized',
      ),
    );
  });
}

function removedCauses(
  old: ResourceRequirements | undefined,
  next: ResourceRequirements | undefined,
  field: string,
  what: string,
): readonly FieldCause[] {
  return (['requests', 'limits'] as const).flatMap((side) => {
    const isRemoved = Object.keys(old?.[side] ?? {}).some((name) => next?.[side]?.[name] === undefined);
    return isRemoved ? [forbiddenField(`${field}.${side}`, `${what} ${side} cannot be removed`)] : [];
  });
}

/** Compares the resources of two containers except cpu and memory. */
function sameExceptCpuAndMemory(old: ResourceRequirements = {}, next: ResourceRequirements = {}): boolean {
  return sameValue(withoutCpuAndMemory(old), withoutCpuAndMemory(next));
}

function withoutCpuAndMemory(resources: ResourceRequirements): JsonObject {
  const rest = (list: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(list).filter(([name]) => name !== 'cpu' && name !== 'memory'));
  return {
    limits: rest(resources.limits),
    requests: rest(resources.requests),
    claims: resources.claims ?? [],
  };
}
