import type { ApiResource } from '../../api/index.ts';
import { sameValue } from '../../api/index.ts';
import type { Namespace, NamespaceCondition } from '../../kinds/index.ts';
import { apiTime, describeError, type Logger } from '../../lib/index.ts';
import type { ApiLoop, StoredObject, World } from '../api/index.ts';
import { qualified } from '../api/index.ts';
import type { ForcedEnds } from '../kinds/namespaces.ts';
import { contentsFinalizer, finalizersOf } from '../kinds/namespaces.ts';
import { namespaces, pods } from '../kinds/resources.ts';
import type { ServerHand } from './keyed-controller.ts';
import { keyedLoop } from './keyed-controller.ts';

export interface NamespaceDeletionDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
  /** All resources whose objects lie in namespaces. */
  readonly resources: readonly ApiResource[];
  readonly forced: ForcedEnds;
}

/** So many are deleted before others get their turn, or fewer if they are large. */
const batch = 200;
/** Should something have been missed. */
const lookAgainMs = 30_000;

/**
 * Empties namespaces that are being deleted, and then lets them go:
 *
 *     marked ──> pods end in their time ──> all else is deleted ──> nothing left: its finalizer goes, and with it the namespace
 *
 * Meanwhile its conditions name what is left and who holds it.
 */
export function namespaceDeletionLoop(deps: NamespaceDeletionDeps): ApiLoop {
  const { world, log } = deps;
  const isEnding = (name: string) =>
    world.objects.get(namespaces, undefined, name)?.metadata.deletionTimestamp !== undefined;
  return keyedLoop({
    name: 'namespace-deletion',
    world,
    log,
    first: () =>
      world.objects
        .all(namespaces)
        .map(({ metadata }) => metadata.name)
        .filter(isEnding),
    keysOf: ({ resource, object: { metadata } }) => {
      const name = resource.plural === namespaces.plural ? metadata.name : metadata.namespace;
      return name !== undefined && isEnding(name) ? [name] : [];
    },
    hints: (ask) => deps.forced.onAdded(ask),
    look: (name) => end(deps, name),
  });
}

function end(deps: NamespaceDeletionDeps, name: string): number | undefined {
  const { world, hand, forced } = deps;
  const namespace = world.objects.get(namespaces, undefined, name);
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined;
  const round = new Round(deps, name, forced.has(namespace.metadata.uid) ? 'forced' : 'gentle');
  round.go();
  const left = remaindersIn(deps, name);
  tell(deps, namespace, left, round.failures);
  if (left.length > 0) return round.isCut ? 0 : lookAgainMs;
  forced.forget(namespace.metadata.uid);
  const newest = world.objects.get(namespaces, undefined, name);
  if (newest === undefined || !finalizersOf(newest).includes(contentsFinalizer)) return undefined;
  const finalizers = finalizersOf(newest).filter((finalizer) => finalizer !== contentsFinalizer);
  hand.update(namespaces, { ...newest, spec: { ...newest.spec, finalizers } }, 'finalize');
  return undefined;
}

function remaindersIn({ world, resources }: NamespaceDeletionDeps, name: string): readonly Remainder[] {
  return resources
    .map((resource) => ({ resource, objects: world.objects.all(resource, name) }))
    .filter(({ objects }) => objects.length > 0);
}

function tell(
  { world, hand }: NamespaceDeletionDeps,
  namespace: StoredObject,
  left: readonly Remainder[],
  failures: readonly string[],
): void {
  const before = (namespace as unknown as Namespace).status?.conditions ?? [];
  const conditions = endingConditions(before, left, failures, apiTime(world.clock.now()));
  if (sameConditions(before, conditions)) return;
  hand.update(namespaces, { ...namespace, status: { ...namespace.status, conditions } }, 'status');
}

/** One round of deletions: all that nobody deleted yet, as far as it goes at a time. */
class Round {
  readonly failures: string[] = [];
  readonly #deps: NamespaceDeletionDeps;
  readonly #name: string;
  readonly #how: 'gentle' | 'forced';
  #left = batch;

  constructor(deps: NamespaceDeletionDeps, name: string, how: 'gentle' | 'forced') {
    this.#deps = deps;
    this.#name = name;
    this.#how = how;
  }

  /** Whether there was more to do than one round does. */
  get isCut(): boolean {
    return this.#left <= 0 || !this.#deps.world.hasRoom();
  }

  go(): void {
    const { world, resources } = this.#deps;
    this.#delete(pods);
    // What a pod still uses stays until it has ended.
    if (world.objects.all(pods, this.#name).length > 0) return;
    for (const resource of resources) if (resource.plural !== pods.plural) this.#delete(resource);
  }

  #delete(resource: ApiResource): void {
    for (const object of this.#deps.world.objects.all(resource, this.#name)) {
      if (this.isCut) return;
      if (this.#how === 'gentle' && object.metadata.deletionTimestamp !== undefined) continue;
      this.#left--;
      this.#deleteOne(resource, object);
    }
  }

  #deleteOne(resource: ApiResource, object: StoredObject): void {
    try {
      if (this.#how === 'gentle') this.#deps.hand.delete(resource, object);
      else this.#sweep(resource, object);
    } catch (error) {
      this.failures.push(`${resource.plural}/${object.metadata.name}: ${describeError(error)}`);
    }
  }
  #sweep(resource: ApiResource, object: StoredObject): void {
    const { hand } = this.#deps;
    const { finalizers = [], ...metadata } = object.metadata;
    const freed = finalizers.length > 0 ? hand.update(resource, { ...object, metadata }) : object;
    hand.delete(resource, freed, { gracePeriodSeconds: 0 });
  }
}

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
