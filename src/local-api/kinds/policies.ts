import { sameValue } from '../../api/index.ts';
import type { Lease, LimitRangeItem, PodDisruptionBudget, ResourceQuota } from '../../kinds/index.ts';
import { parseQuantity, quantityMilliValue } from '../../lib/index.ts';
import { dnsSubdomain } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { immutable, invalid, oneOf } from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';

export const leaseStrategy: ResourceStrategy = {
  createOnUpdate: 'allowed',
  unconditionalUpdate: 'refused',
  prepare: withoutCoordinatedElection,
  validate: validatorFor(dnsSubdomain, leaseCauses),
};

/** Removes the fields of coordinated leader election, which is not implemented. */
function withoutCoordinatedElection(object: StoredObject): StoredObject {
  if (object.spec === undefined) return object;
  const { strategy: _, preferredHolder: __, ...spec } = object.spec;
  return { ...object, spec };
}

function leaseCauses(object: StoredObject): readonly FieldCause[] {
  const { spec = {} } = object as unknown as Lease;
  const { leaseDurationSeconds: seconds = 1, leaseTransitions: transitions = 0 } = spec;
  return [
    ...(seconds <= 0 ? [invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0')] : []),
    ...(transitions < 0
      ? [invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]
      : []),
  ];
}

/** Resource quotas are stored but not enforced. */
export const resourceQuotaStrategy: ResourceStrategy = {
  status: 'separate',
  prepare: (object, { before }) => (before === undefined ? withFields(object, { status: {} }) : object),
  validate: validatorFor(dnsSubdomain, (object, { before }) => quotaCauses(object, before)),
};

function quotaCauses(object: StoredObject, before: StoredObject | undefined): readonly FieldCause[] {
  const { spec = {} } = object as unknown as ResourceQuota;
  const negative = Object.entries(spec.hard ?? {}).filter(([, amount]) => isNegative(amount));
  return [
    ...negative.map(([name, amount]) =>
      invalid(`spec.hard[${name}]`, amount, 'must be greater than or equal to 0'),
    ),
    ...(before === undefined
      ? []
      : immutable('spec.scopes', before.spec?.['scopes'] ?? [], spec.scopes ?? [])),
  ];
}

function isNegative(amount: string): boolean {
  return quantityMilliValue(parseQuantity(amount)) < 0n;
}

export const limitRangeStrategy: ResourceStrategy = {
  prepare: (object) => {
    const limits = object.spec?.['limits'] as readonly LimitRangeItem[] | undefined;
    return limits === undefined
      ? object
      : { ...object, spec: { ...object.spec, limits: limits.map(withDefaults) } };
  },
  validate: validatorFor(dnsSubdomain),
};

/**
 * Adds missing default limits and requests to a LimitRange item for containers, derived from its
 * other values.
 */
function withDefaults(item: LimitRangeItem): LimitRangeItem {
  if (item.type !== 'Container') return item;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  return withFields<LimitRangeItem & Record<string, unknown>>(
    { ...item },
    {
      default: Object.keys(limits).length > 0 ? limits : undefined,
      defaultRequest: Object.keys(requests).length > 0 ? requests : undefined,
    },
  );
}

/** Disruption budgets are stored, but evictions do not enforce them. */
export const podDisruptionBudgetStrategy: ResourceStrategy = {
  status: 'separate',
  generation: 'counted',
  unconditionalUpdate: 'refused',
  prepare: preparedBudget,
  validate: validatorFor(dnsSubdomain, budgetCauses),
};

function preparedBudget(object: StoredObject, { before }: WriteContext): StoredObject {
  if (before !== undefined) return object;
  const none = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  return { ...object, status: none };
}

function budgetCauses(object: StoredObject, { before, subresource }: WriteContext): readonly FieldCause[] {
  const { spec = {} } = object as unknown as PodDisruptionBudget;
  if (subresource === 'status' || (before !== undefined && sameValue(before.spec, object.spec))) return [];
  const { minAvailable, maxUnavailable } = spec;
  return [
    ...(minAvailable !== undefined && maxUnavailable !== undefined
      ? [invalid('spec', budgetInGoFields(spec), 'minAvailable and maxUnavailable cannot be both set')]
      : []),
    ...countCauses('spec.minAvailable', minAvailable),
    ...countCauses('spec.maxUnavailable', maxUnavailable),
    ...oneOf('spec.unhealthyPodEvictionPolicy', spec.unhealthyPodEvictionPolicy, [
      'AlwaysAllow',
      'IfHealthyBudget',
    ]),
  ];
}

function budgetInGoFields(spec: NonNullable<PodDisruptionBudget['spec']>) {
  const { minAvailable, selector, maxUnavailable, unhealthyPodEvictionPolicy } = spec;
  return {
    MinAvailable: minAvailable,
    Selector: selector ?? null,
    MaxUnavailable: maxUnavailable,
    UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
  };
}

function countCauses(field: string, count: number | string | undefined): readonly FieldCause[] {
  if (count === undefined) return [];
  if (typeof count === 'number')
    return count < 0 ? [invalid(field, count, 'must be greater than or equal to 0')] : [];
  if (!/^\d+%$/.test(count))
    return [
      invalid(
        field,
        count,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ),
    ];
  return Number.parseInt(count, 10) > 100 ? [invalid(field, count, 'must not be greater than 100%')] : [];
}
