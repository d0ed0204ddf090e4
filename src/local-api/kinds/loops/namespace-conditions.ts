import { type ApiResource, sameValue } from '../../../api/index.ts';
import type { NamespaceCondition } from '../../../kinds/index.ts';
import type { StoredObject } from '../../core/index.ts';
import { qualified } from '../../core/index.ts';

/** What is left in a namespace that is being deleted. */
export interface Remainder {
  readonly resource: ApiResource;
  readonly objects: readonly StoredObject[];
}

/** So many are named; the rest is counted. */
const mostNamed = 5;

/** What the conditions of a namespace say of its end, with the times of those that say the same as before. */
export function endingConditions(
  before: readonly NamespaceCondition[],
  remainders: readonly Remainder[],
  failures: readonly string[],
  now: string,
): readonly NamespaceCondition[] {
  const told = [
    condition(
      'NamespaceDeletionDiscoveryFailure',
      [],
      'ResourcesDiscovered',
      'All resources successfully discovered',
    ),
    condition(
      'NamespaceDeletionGroupVersionParsingFailure',
      [],
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    failures.length === 0
      ? condition(
          'NamespaceDeletionContentFailure',
          [],
          'ContentDeleted',
          'All content successfully deleted, may be waiting on finalization',
        )
      : condition(
          'NamespaceDeletionContentFailure',
          [`Failed to delete all resource types, ${failures.length} remaining: ${failures.join(', ')}`],
          'ContentDeletionFailed',
          '',
        ),
    remainders.length === 0
      ? condition('NamespaceContentRemaining', [], 'ContentRemoved', 'All content successfully removed')
      : condition('NamespaceContentRemaining', [remaining(remainders)], 'SomeResourcesRemain', ''),
    holders(remainders).length === 0
      ? condition(
          'NamespaceFinalizersRemaining',
          [],
          'ContentHasNoFinalizers',
          'All content-preserving finalizers finished',
        )
      : condition('NamespaceFinalizersRemaining', [held(remainders)], 'SomeFinalizersRemain', ''),
  ];
  const others = before.filter(({ type }) => !told.some((one) => one.type === type));
  return [...others, ...told.map((one) => withTime(one, before, now))];
}

type Told = Omit<NamespaceCondition, 'lastTransitionTime'>;

/** A condition that something is wrong, if there is anything to say of it. */
function condition(type: string, wrong: readonly string[], reason: string, fine: string): Told {
  return { type, status: wrong.length > 0 ? 'True' : 'False', reason, message: wrong[0] ?? fine };
}

function withTime(told: Told, before: readonly NamespaceCondition[], now: string): NamespaceCondition {
  const known = before.find(({ type }) => type === told.type);
  const isSame = known?.status === told.status;
  return { ...told, lastTransitionTime: isSame ? (known.lastTransitionTime ?? now) : now };
}

function remaining(remainders: readonly Remainder[]): string {
  const each = remainders.map(
    ({ resource: { plural, group }, objects }) =>
      `${plural}.${group} has ${objects.length} resource instances (${named(objects)})`,
  );
  return `Some resources are remaining: ${each.toSorted().join(', ')}`;
}

function named(objects: readonly StoredObject[]): string {
  const names = objects.slice(0, mostNamed).map(({ metadata }) => metadata.name);
  const more = objects.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Each finalizer with the objects it holds, as they are called. */
function holders(remainders: readonly Remainder[]): readonly (readonly [string, readonly string[]])[] {
  const found = new Map<string, string[]>();
  for (const { resource, objects } of remainders)
    for (const { metadata } of objects)
      for (const finalizer of metadata.finalizers ?? []) {
        const name = `${qualified(resource.plural, resource.group)}/${metadata.name}`;
        found.set(finalizer, [...(found.get(finalizer) ?? []), name]);
      }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function held(remainders: readonly Remainder[]): string {
  const each = holders(remainders).map(([finalizer, names]) => {
    const shown = names.slice(0, mostNamed).join(', ');
    return `${finalizer} in ${names.length} resource instances (${shown}${names.length > mostNamed ? ', …' : ''})`;
  });
  return `Some content in the namespace has finalizers remaining: ${each.join(', ')}`;
}

export function sameConditions(a: readonly NamespaceCondition[], b: readonly NamespaceCondition[]): boolean {
  return sameValue(a, b);
}
