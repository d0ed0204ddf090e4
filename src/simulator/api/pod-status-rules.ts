import { type JsonObject, sameValue } from '../../api/index.ts';
import type { StoredObject } from './stored-object.ts';

/** What an API server finds wrong with a new status of a pod. */
export function podStatusComplaints(before: StoredObject, after: StoredObject): readonly string[] {
  const [old, status] = [before.status ?? {}, after.status ?? {}];
  return [
    ...transitions(after, old, status, 'containerStatuses', 'containers'),
    ...transitions(after, old, status, 'initContainerStatuses', 'initContainers'),
    ...transitions(after, old, status, 'ephemeralContainerStatuses', 'ephemeralContainers'),
    ...immutable(old, status),
    ...addresses(status, 'podIPs', 'podIP'),
    ...addresses(status, 'hostIPs', 'hostIP'),
  ];
}

/** What the server fills in again when a status leaves it out. */
export function keptPodStatus(before: StoredObject, after: StoredObject): StoredObject {
  const kept = ['qosClass', 'observedGeneration'].filter(
    (name) => after.status?.[name] === undefined && before.status?.[name] !== undefined,
  );
  const back = Object.fromEntries(kept.map((name) => [name, before.status?.[name]]));
  const conditions = listAt(after.status ?? {}, 'conditions').map((condition) =>
    keptGeneration(before, condition),
  );
  const list = conditions.length === 0 ? {} : { conditions };
  return { ...after, status: { ...after.status, ...back, ...list } };
}

function keptGeneration({ status = {} }: StoredObject, condition: JsonObject): JsonObject {
  const old = listAt(status, 'conditions').find(({ type }) => type === condition['type']);
  const generation = condition['observedGeneration'] ?? old?.['observedGeneration'];
  return generation === undefined ? condition : { ...condition, observedGeneration: generation };
}

type ListName = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';
type SpecName = 'containers' | 'initContainers' | 'ephemeralContainers';

/** A container that ended stays ended, unless something in the spec says that it may begin again. */
function transitions(
  pod: StoredObject,
  old: JsonObject,
  status: JsonObject,
  list: ListName,
  specs: SpecName,
): readonly string[] {
  if (specs !== 'ephemeralContainers' && restartsAll(pod)) return [];
  return listAt(old, list).flatMap((entry, index) => {
    const exitCode = terminated(entry)?.['exitCode'] as number | undefined;
    const next = listAt(status, list).find(({ name }) => name === entry['name']);
    if (exitCode === undefined || next === undefined || terminated(next) !== undefined) return [];
    const container = listAt(pod.spec ?? {}, specs).find(({ name }) => name === entry['name']);
    if (specs !== 'ephemeralContainers' && container && mayRestart(pod, container, exitCode)) return [];
    return [`status.${list}[${index}].state: Forbidden: may not be transitioned to non-terminated state`];
  });
}

function mayRestart(pod: StoredObject, container: JsonObject, exitCode: number): boolean {
  const rules = listAt(container, 'restartPolicyRules');
  const isRuled = container['restartPolicy'] !== undefined && rules.some((rule) => speaksOf(rule, exitCode));
  const policy = container['restartPolicy'] ?? pod.spec?.['restartPolicy'] ?? 'Always';
  return isRuled || policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function speaksOf(rule: JsonObject, exitCode: number): boolean {
  const { operator, values } = (rule['exitCodes'] ?? {}) as { operator?: string; values?: readonly number[] };
  return (values ?? []).includes(exitCode) === (operator === 'In');
}

function restartsAll({ spec }: StoredObject): boolean {
  return [...listAt(spec ?? {}, 'containers'), ...listAt(spec ?? {}, 'initContainers')].some((container) =>
    listAt(container, 'restartPolicyRules').some(({ action }) => action === 'RestartAllContainers'),
  );
}

function immutable(old: JsonObject, status: JsonObject): readonly string[] {
  const { qosClass } = status;
  const isChanged = old['qosClass'] !== undefined && !sameValue(old['qosClass'], qosClass);
  return isChanged ? [`status.qosClass: Invalid value: "${qosClass}": field is immutable`] : [];
}

function addresses(
  status: JsonObject,
  list: 'podIPs' | 'hostIPs',
  single: 'podIP' | 'hostIP',
): readonly string[] {
  const ips = listAt(status, list).map(({ ip }) => String(ip));
  const families = new Set(ips.map((ip) => ip.includes(':')));
  const first = status[single];
  return [
    ...(ips.length > 2
      ? [`status.${list}: Invalid value: may specify no more than one for each IP family`]
      : []),
    ...(ips.length === 2 && families.size === 1
      ? [`status.${list}: Invalid value: must be of two IP families`]
      : []),
    ...(new Set(ips).size < ips.length ? [`status.${list}: Duplicate value: "${ips[1]}"`] : []),
    ...(ips[0] !== undefined && ips[0] !== first
      ? [`status.${list}[0].ip: Invalid value: must be ${single}, "${first}"`]
      : []),
  ];
}

function terminated(entry: JsonObject): JsonObject | undefined {
  return (entry['state'] as JsonObject | undefined)?.['terminated'] as JsonObject | undefined;
}

function listAt(object: JsonObject, name: string): readonly JsonObject[] {
  return (object[name] ?? []) as readonly JsonObject[];
}
