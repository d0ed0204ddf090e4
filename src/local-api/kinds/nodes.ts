import { isIP } from 'node:net';
import { sameValue } from '../../api/index.ts';
import type { Node, NodeSpec, Taint } from '../../kinds/index.ts';
import { parseQuantity, quantityMilliValue } from '../../lib/index.ts';
import { dnsSubdomain, labelValue, qualifiedName } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { duplicate, forbiddenField, invalid, notSupported, required } from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';

export const nodeStrategy: ResourceStrategy = {
  // A create stores the status of a node; later writes need the status subresource.
  status: 'separate',
  prepare: prepared,
  validate: validatorFor(dnsSubdomain, nodeCauses, updateCauses),
};

function asNode(object: StoredObject): Node {
  return object as unknown as Node;
}

/** Sets allocatable to the capacity if it is not set. */
function prepared(object: StoredObject): StoredObject {
  const status = asNode(object).status;
  const spec = preparedSpec(asNode(object).spec ?? {});
  const filled =
    status?.capacity !== undefined && status.allocatable === undefined
      ? { status: { ...object.status, allocatable: status.capacity } }
      : {};
  return withFields(object, { spec, ...filled });
}

/** Sets podCIDR from podCIDRs, or the other way around. */
function preparedSpec(spec: NodeSpec): NodeSpec {
  const { podCIDR = '', podCIDRs = [] } = spec;
  if (podCIDR !== '' && podCIDRs.length === 0) return { ...spec, podCIDRs: [podCIDR] };
  return podCIDR === '' && podCIDRs.length > 0 ? { ...spec, podCIDR: podCIDRs[0] } : spec;
}

function nodeCauses(object: StoredObject): readonly FieldCause[] {
  const { spec, status } = asNode(object);
  return [
    ...taintCauses(spec?.taints ?? []),
    ...amountCauses('status.capacity', status?.capacity ?? {}),
    ...amountCauses('status.allocatable', status?.allocatable ?? {}),
    ...rangeCauses(spec?.podCIDRs ?? []),
  ];
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

function taintCauses(taints: readonly Taint[]): readonly FieldCause[] {
  return taints.flatMap((taint, index) => {
    const field = `metadata.taints[${index}]`;
    const isTwin = taints
      .slice(0, index)
      .some(({ key, effect }) => key === taint.key && effect === taint.effect);
    return [
      ...labelKeyCauses(`${field}.key`, taint.key),
      ...labelValue(taint.value ?? '').map((message) => invalid(`${field}.value`, taint.value, message)),
      ...effectCauses(`${field}.effect`, taint.effect),
      ...(isTwin ? [duplicate(field, taint, 'taints must be unique by key and effect pair')] : []),
    ];
  });
}

function labelKeyCauses(field: string, key: string): readonly FieldCause[] {
  return qualifiedName(key).map((message) => invalid(field, key, message));
}

function effectCauses(field: string, effect: string): readonly FieldCause[] {
  if (effect === '') return [required(field)];
  return effects.includes(effect) ? [] : [notSupported(field, effect, effects)];
}

function amountCauses(field: string, amounts: Readonly<Record<string, string>>): readonly FieldCause[] {
  return Object.entries(amounts)
    .filter(([, amount]) => quantityMilliValue(parseQuantity(amount)) < 0n)
    .map(([name, amount]) => invalid(`${field}.${name}`, amount, 'must be greater than or equal to 0'));
}

function rangeCauses(ranges: readonly string[]): readonly FieldCause[] {
  const field = 'spec.podCIDRs';
  const families = ranges.map((range) => isIP(range.split('/')[0] ?? ''));
  const causes = ranges.flatMap((range, index) =>
    isRange(range)
      ? []
      : [
          invalid(
            `${field}[${index}]`,
            range,
            'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
          ),
        ],
  );
  const isPair = new Set(families).size === families.length;
  return isPair
    ? causes
    : [...causes, invalid(field, ranges, 'may specify no more than one CIDR for each IP family')];
}

function isRange(text: string): boolean {
  const [address = '', bits = ''] = text.split('/');
  const family = isIP(address);
  return family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function updateCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before === undefined) return [];
  const { spec: old = {} } = asNode(before);
  const { spec = {}, status } = asNode(object);
  return [
    ...addressTwins(status?.addresses ?? []),
    ...setOnce('podCIDRs', 'podCIDR', old.podCIDRs ?? [], spec.podCIDRs ?? []),
    ...setOnce('providerID', 'providerID', old.providerID ?? '', spec.providerID ?? ''),
  ];
}

function setOnce(
  field: string,
  called: string,
  before: string | readonly string[],
  after: string | readonly string[],
): readonly FieldCause[] {
  if (before.length === 0 || sameValue(before, after)) return [];
  return [forbiddenField(`spec.${field}`, `node updates may not change ${called} except from "" to valid`)];
}

function addressTwins(
  addresses: readonly { readonly type: string; readonly address: string }[],
): readonly FieldCause[] {
  return addresses.flatMap((one, index) =>
    addresses.slice(0, index).some(({ type, address }) => type === one.type && address === one.address)
      ? [duplicate(`status.addresses[${index}]`, one)]
      : [],
  );
}
