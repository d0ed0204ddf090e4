import type { PriorityClass, RuntimeClass, Toleration } from '../../kinds/index.ts';
import { parseQuantity, quantityMilliValue } from '../../lib/index.ts';
import { dnsLabel, dnsSubdomain, qualifiedName } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { forbidden } from '../api/index.ts';
import { duplicate, forbiddenField, immutable, invalid, oneOf, required } from '../validation/causes.ts';
import { labelCauses, validatorFor } from '../validation/metadata.ts';
import { priorityClasses } from './resources.ts';

export const runtimeClassStrategy: ResourceStrategy = {
  createOnUpdate: 'allowed',
  unconditionalUpdate: 'refused',
  validate: validatorFor(dnsSubdomain, runtimeClassCauses, (object, { before }) =>
    before === undefined ? [] : immutable('handler', before['handler'], object['handler']),
  ),
};

function runtimeClassCauses(object: StoredObject): readonly FieldCause[] {
  const { handler, overhead, scheduling } = object as unknown as RuntimeClass;
  const named =
    handler === ''
      ? [required('handler')]
      : dnsLabel(handler).map((message) => invalid('handler', handler, message));
  return [
    ...named,
    ...Object.entries(overhead?.podFixed ?? {}).flatMap(([name, amount]) =>
      quantityMilliValue(parseQuantity(amount)) < 0n
        ? [invalid(`overhead.limits[${name}]`, amount, 'must be greater than or equal to 0')]
        : [],
    ),
    ...labelCauses(scheduling?.nodeSelector ?? {}, 'scheduling.nodeSelector'),
    ...(scheduling?.tolerations ?? []).flatMap((one, index, all) => tolerationCauses(one, index, all)),
  ];
}

function tolerationCauses(
  toleration: Toleration,
  index: number,
  all: readonly Toleration[],
): readonly FieldCause[] {
  const field = `scheduling.tolerations[${index}]`;
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  const isTwin = all
    .slice(0, index)
    .some((other) =>
      ['key', 'operator', 'value', 'effect'].every((part) => sameField(other, toleration, part)),
    );
  return [
    ...(key === '' ? [] : qualifiedName(key)).map((message) => invalid(`${field}.key`, key, message)),
    ...(key === '' && operator !== 'Exists'
      ? [
          invalid(
            `${field}.operator`,
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
          ),
        ]
      : []),
    ...(operator === 'Exists' && value !== ''
      ? [invalid(`${field}.operator`, value, "value must be empty when `operator` is 'Exists'")]
      : []),
    ...oneOf(`${field}.operator`, operator, ['Equal', 'Exists']),
    ...oneOf(`${field}.effect`, effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
    ...(isTwin ? [duplicate(field, toleration)] : []),
  ];
}

function sameField(a: Toleration, b: Toleration, field: string): boolean {
  return (a[field as keyof Toleration] ?? '') === (b[field as keyof Toleration] ?? '');
}

/** The built-in priority classes with their values. */
export const systemPriorities = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
} as const;

const maxUserPriority = 1_000_000_000;

export const priorityClassStrategy: ResourceStrategy = {
  prepare: (object, { before }) => {
    const preemptionPolicy = object['preemptionPolicy'] ?? 'PreemptLowerPriority';
    const metadata = before === undefined ? { ...object.metadata, generation: 1 } : object.metadata;
    return { ...object, metadata, preemptionPolicy };
  },
  admit: admittedPriority,
  validate: validatorFor(dnsSubdomain, priorityCauses, priorityChange),
};

function asPriority(object: StoredObject): PriorityClass {
  return object as unknown as PriorityClass;
}

/** Only one priority class may be the global default. */
function admittedPriority(object: StoredObject, write: WriteContext): StoredObject {
  const { name } = object.metadata;
  if (write.verb === 'delete' || asPriority(object).globalDefault !== true) return object;
  const other = write.objects
    .all(priorityClasses)
    .find((one) => one.metadata.name !== name && asPriority(one).globalDefault === true);
  if (other !== undefined)
    throw forbidden(
      { resource: priorityClasses, name },
      `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`,
    );
  return object;
}

function priorityCauses(object: StoredObject): readonly FieldCause[] {
  const { value, preemptionPolicy } = asPriority(object);
  const { name } = object.metadata;
  const policy = oneOf('preemptionPolicy', preemptionPolicy, ['PreemptLowerPriority', 'Never']);
  if (name.startsWith('system-')) return [...systemCauses(asPriority(object), name), ...policy];
  if (value <= maxUserPriority) return policy;
  const detail = `maximum allowed value of a user defined priority is ${maxUserPriority}`;
  return [forbiddenField('value', detail), ...policy];
}

function systemCauses({ value, globalDefault = false }: PriorityClass, name: string): readonly FieldCause[] {
  const expected = systemPriorities[name as keyof typeof systemPriorities] as number | undefined;
  const why =
    expected === undefined
      ? `${name} is not a known system priority class`
      : value !== expected
        ? `value of ${name} PriorityClass must be ${expected}`
        : globalDefault
          ? `globalDefault of ${name} PriorityClass must be false`
          : undefined;
  const detail = `priority class names with 'system-' prefix are reserved for system use only. error: ${why}`;
  return why === undefined ? [] : [forbiddenField('metadata.name', detail)];
}

function priorityChange(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before === undefined) return [];
  const isOther = asPriority(before).value !== asPriority(object).value;
  return [
    ...(isOther ? [forbiddenField('value', 'may not be changed in an update.')] : []),
    ...immutable('preemptionPolicy', before['preemptionPolicy'], object['preemptionPolicy']),
  ];
}
