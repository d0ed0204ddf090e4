import { isIP } from 'node:net';
import { type JsonObject, sameValue } from '../../api/index.ts';
import type { FieldCause } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { duplicate, forbiddenField, invalid } from '../validation/causes.ts';

/** Validates a status update of a pod. */
export function podStatusCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const [old, status] = [before.status ?? {}, after.status ?? {}];
  return [
    ...generationCauses(status),
    ...nominationCauses(before, old, status),
    ...qosClassCauses(old, status),
    ...transitionCauses(after, old, status, 'containerStatuses', 'containers'),
    ...transitionCauses(after, old, status, 'initContainerStatuses', 'initContainers'),
    ...transitionCauses(after, old, status, 'ephemeralContainerStatuses', 'ephemeralContainers'),
    ...addressCauses(old, status, 'podIPs'),
    ...hostAddressCauses(status),
    ...addressCauses(old, status, 'hostIPs'),
  ];
}

function generationCauses(status: JsonObject): readonly FieldCause[] {
  const given = [
    ...listAt(status, 'conditions').map(
      ({ observedGeneration }, index) =>
        [`status.conditions[${index}].observedGeneration`, observedGeneration] as const,
    ),
    ['status.observedGeneration', status['observedGeneration']] as const,
  ];
  return given.flatMap(([field, value]) =>
    typeof value === 'number' && value < 0 ? [invalid(field, value, 'must be a non-negative integer')] : [],
  );
}

function nominationCauses(before: StoredObject, old: JsonObject, status: JsonObject): readonly FieldCause[] {
  const name = status['nominatedNodeName'];
  if (!name || name === old['nominatedNodeName'] || !before.spec?.['nodeName']) return [];
  return [
    forbiddenField('status.nominatedNodeName', 'may not be set on pods that are already bound to a node'),
  ];
}

/** Keeps fields that a status update omits. */
export function withPreservedStatus(before: StoredObject, after: StoredObject): StoredObject {
  const preserved = ['qosClass', 'observedGeneration'].filter(
    (name) => after.status?.[name] === undefined && before.status?.[name] !== undefined,
  );
  const back = Object.fromEntries(preserved.map((name) => [name, before.status?.[name]]));
  const old = new Map(
    listAt(before.status ?? {}, 'conditions')
      .map((condition) => [condition['type'], condition] as const)
      .reverse(),
  );
  const conditions = listAt(after.status ?? {}, 'conditions').map((condition) =>
    withPreservedGeneration(old.get(condition['type']), condition),
  );
  const list = conditions.length === 0 ? {} : { conditions };
  return {
    ...after,
    status: { ...after.status, ...back, ...list, ...withContainerStates(after.status ?? {}) },
  };
}

const statusLists: readonly ListName[] = [
  'containerStatuses',
  'initContainerStatuses',
  'ephemeralContainerStatuses',
];

/** A stored container status always has state and lastState. */
function withContainerStates(status: JsonObject): JsonObject {
  const lists = statusLists.filter((name) => listAt(status, name).length > 0);
  return Object.fromEntries(
    lists.map((name) => [name, listAt(status, name).map((one) => ({ state: {}, lastState: {}, ...one }))]),
  );
}

function withPreservedGeneration(old: JsonObject | undefined, condition: JsonObject): JsonObject {
  const generation = condition['observedGeneration'] ?? old?.['observedGeneration'];
  return generation === undefined ? condition : { ...condition, observedGeneration: generation };
}

type ListName = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';
type SpecName = 'containers' | 'initContainers' | 'ephemeralContainers';

/** Indexes a list by name; of several items with the same name, the first one counts. */
function byName(list: readonly JsonObject[]): ReadonlyMap<unknown, JsonObject> {
  return new Map(list.map((item) => [item['name'], item] as const).reverse());
}

/** A terminated container must not become non-terminated, unless its restart policy allows it. */
function transitionCauses(
  pod: StoredObject,
  old: JsonObject,
  status: JsonObject,
  list: ListName,
  specs: SpecName,
): readonly FieldCause[] {
  if (specs !== 'ephemeralContainers' && restartsAll(pod)) return [];
  const nextOf = byName(listAt(status, list));
  const containerOf = byName(listAt(pod.spec ?? {}, specs));
  return listAt(old, list).flatMap((entry, index) => {
    const exitCode = terminated(entry)?.['exitCode'] as number | undefined;
    const next = nextOf.get(entry['name']);
    if (exitCode === undefined || next === undefined || terminated(next) !== undefined) return [];
    const container = containerOf.get(entry['name']);
    if (specs !== 'ephemeralContainers' && container && mayRestart(pod, container, exitCode)) return [];
    return [
      forbiddenField(`status.${list}[${index}].state`, 'may not be transitioned to non-terminated state'),
    ];
  });
}

function mayRestart(pod: StoredObject, container: JsonObject, exitCode: number): boolean {
  const rules = listAt(container, 'restartPolicyRules');
  const isRuled =
    container['restartPolicy'] !== undefined && rules.some((rule) => ruleMatches(rule, exitCode));
  const policy = container['restartPolicy'] ?? pod.spec?.['restartPolicy'] ?? 'Always';
  return isRuled || policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function ruleMatches(rule: JsonObject, exitCode: number): boolean {
  const { operator, values } = (rule['exitCodes'] ?? {}) as { operator?: string; values?: readonly number[] };
  return (values ?? []).includes(exitCode) === (operator === 'In');
}

function restartsAll({ spec }: StoredObject): boolean {
  return [...listAt(spec ?? {}, 'containers'), ...listAt(spec ?? {}, 'initContainers')].some((container) =>
    listAt(container, 'restartPolicyRules').some(({ action }) => action === 'RestartAllContainers'),
  );
}

function qosClassCauses(old: JsonObject, status: JsonObject): readonly FieldCause[] {
  const { qosClass } = status;
  const isChanged = old['qosClass'] !== undefined && !sameValue(old['qosClass'], qosClass);
  return isChanged ? [invalid('status.qosClass', qosClass, 'field is immutable')] : [];
}

/**
 * Validates pod and host IPs of a status; those that were stored before are not validated again.
 */
function addressCauses(
  old: JsonObject,
  status: JsonObject,
  list: 'podIPs' | 'hostIPs',
): readonly FieldCause[] {
  const field = `status.${list}`;
  const before = new Set(listAt(old, list).map(({ ip }) => ip));
  const ips = listAt(status, list).map(({ ip }) => String(ip ?? ''));
  const firstOf = new Map(ips.map((ip, index) => [ip, index] as const).reverse());
  const families = new Set(ips.map((ip) => isIP(ip)));
  const tooMany = ips.length > 2 || (ips.length === 2 && families.size === 1);
  return [
    ...ips.flatMap((ip, index) =>
      isIP(ip) !== 0 || before.has(ip)
        ? []
        : [
            invalid(
              `${field}[${index}]`,
              ip,
              'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
            ),
          ],
    ),
    ...(tooMany
      ? [
          invalid(
            field,
            ips.map((ip) => ({ IP: ip })),
            'may specify no more than one IP for each IP family',
          ),
        ]
      : []),
    ...ips.flatMap((ip, index) =>
      firstOf.get(ip) !== index ? [duplicate(`${field}[${index}]`, listAt(status, list)[index])] : [],
    ),
  ];
}

function hostAddressCauses(status: JsonObject): readonly FieldCause[] {
  const [first] = listAt(status, 'hostIPs');
  if (first === undefined || first['ip'] === status['hostIP']) return [];
  return [invalid('status.hostIPs[0].ip', first['ip'], 'must be equal to `hostIP`')];
}

function terminated(entry: JsonObject): JsonObject | undefined {
  return (entry['state'] as JsonObject | undefined)?.['terminated'] as JsonObject | undefined;
}

function listAt(object: JsonObject, name: string): readonly JsonObject[] {
  return (object[name] ?? []) as readonly JsonObject[];
}
