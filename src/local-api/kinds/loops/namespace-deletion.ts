import type { ApiResource } from '../../../api/index.ts';
import type { Namespace } from '../../../kinds/index.ts';
import { apiTime, describeError, type Logger } from '../../../lib/index.ts';
import type { ApiLoop, StoredObject, World } from '../../core/index.ts';
import type { ForcedEnds } from '../forced-ends.ts';
import { contentsFinalizer, finalizersOf } from '../namespaces.ts';
import { namespaces, pods } from '../resources.ts';
import { keyedLoop } from './keyed-loop.ts';
import { endingConditions, type Remainder, sameConditions } from './namespace-conditions.ts';
import type { ServerHand } from './server-hand.ts';

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
