import type { ApiResource } from '../../api/index.ts';
import { sameValue } from '../../api/index.ts';
import type { Namespace, NamespaceCondition } from '../../kinds/index.ts';
import { apiTime, describeError, type Logger } from '../../lib/index.ts';
import type { Controller, ServerContext, StoredObject } from '../api/index.ts';
import { groupQualified } from '../api/index.ts';
import type { ForcedNamespaceDeletions } from '../kinds/namespaces.ts';
import { finalizersOf, namespaceFinalizer } from '../kinds/namespaces.ts';
import { namespaces, pods } from '../kinds/resources.ts';
import type { ControllerClient } from './keyed-controller.ts';
import { keyedController } from './keyed-controller.ts';

export interface NamespaceDeletionDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
  /** All namespaced resources, whose objects are deleted. */
  readonly resources: readonly ApiResource[];
  readonly forcedDeletions: ForcedNamespaceDeletions;
}

/** The maximum number of deletions in one pass; fewer if the store is busy. */
const batch = 200;
/** The interval at which a namespace is checked although no change was reported. */
const resyncMs = 30_000;

/**
 * Empties namespaces that are being deleted, and then finalizes them:
 *
 *     deletionTimestamp ──> pods terminate ──> other objects are deleted ──> empty: the finalizer
 *     is removed, and the namespace with it
 *
 * Until then the namespace conditions list the remaining objects and finalizers.
 */
export function namespaceDeletionController(deps: NamespaceDeletionDeps): Controller {
  const { context, log } = deps;
  const isEnding = (name: string) =>
    context.objects.get(namespaces, undefined, name)?.metadata.deletionTimestamp !== undefined;
  return keyedController({
    name: 'namespace-deletion',
    context: context,
    log,
    initialKeys: () =>
      context.objects
        .all(namespaces)
        .map(({ metadata }) => metadata.name)
        .filter(isEnding),
    keysFor: ({ resource, object: { metadata } }) => {
      const name = resource.plural === namespaces.plural ? metadata.name : metadata.namespace;
      return name !== undefined && isEnding(name) ? [name] : [];
    },
    hints: (enqueue) => deps.forcedDeletions.onAdded(enqueue),
    reconcile: (name) => reconcileNamespace(deps, name),
  });
}

function reconcileNamespace(deps: NamespaceDeletionDeps, name: string): number | undefined {
  const { context, client, forcedDeletions } = deps;
  const namespace = context.objects.get(namespaces, undefined, name);
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined;
  const round = new DeletionPass(
    deps,
    name,
    forcedDeletions.has(namespace.metadata.uid) ? 'forced' : 'gentle',
  );
  round.run();
  const left = remainingObjects(deps, name);
  updateConditions(deps, namespace, left, round.failures);
  if (left.length > 0) return round.isTruncated ? 0 : resyncMs;
  forcedDeletions.remove(namespace.metadata.uid);
  const newest = context.objects.get(namespaces, undefined, name);
  if (newest === undefined || !finalizersOf(newest).includes(namespaceFinalizer)) return undefined;
  const finalizers = finalizersOf(newest).filter((finalizer) => finalizer !== namespaceFinalizer);
  client.update(namespaces, { ...newest, spec: { ...newest.spec, finalizers } }, 'finalize');
  return undefined;
}

function remainingObjects(
  { context, resources }: NamespaceDeletionDeps,
  name: string,
): readonly RemainingObjects[] {
  return resources
    .map((resource) => ({ resource, objects: context.objects.all(resource, name) }))
    .filter(({ objects }) => objects.length > 0);
}

function updateConditions(
  { context, client }: NamespaceDeletionDeps,
  namespace: StoredObject,
  left: readonly RemainingObjects[],
  failures: readonly string[],
): void {
  const before = (namespace as unknown as Namespace).status?.conditions ?? [];
  const conditions = terminationConditions(before, left, failures, apiTime(context.clock.now()));
  if (sameConditions(before, conditions)) return;
  client.update(namespaces, { ...namespace, status: { ...namespace.status, conditions } }, 'status');
}

/** One pass over the contents of a namespace, with a limited number of deletions. */
class DeletionPass {
  readonly failures: string[] = [];
  readonly #deps: NamespaceDeletionDeps;
  readonly #name: string;
  readonly #mode: 'gentle' | 'forced';
  #left = batch;

  constructor(deps: NamespaceDeletionDeps, name: string, how: 'gentle' | 'forced') {
    this.#deps = deps;
    this.#name = name;
    this.#mode = how;
  }

  /** Whether the pass ended because of its limit. */
  get isTruncated(): boolean {
    return this.#left <= 0 || !this.#deps.context.acceptsWrites();
  }

  run(): void {
    const { context, resources } = this.#deps;
    this.#delete(pods);
    // Objects that terminating pods may still use are kept until the pods are removed.
    if (context.objects.all(pods, this.#name).length > 0) return;
    for (const resource of resources) if (resource.plural !== pods.plural) this.#delete(resource);
  }

  #delete(resource: ApiResource): void {
    for (const object of this.#deps.context.objects.all(resource, this.#name)) {
      if (this.isTruncated) return;
      if (this.#mode === 'gentle' && object.metadata.deletionTimestamp !== undefined) continue;
      this.#left--;
      this.#deleteOne(resource, object);
    }
  }

  #deleteOne(resource: ApiResource, object: StoredObject): void {
    try {
      if (this.#mode === 'gentle') this.#deps.client.delete(resource, object);
      else this.#forceDelete(resource, object);
    } catch (error) {
      this.failures.push(`${resource.plural}/${object.metadata.name}: ${describeError(error)}`);
    }
  }
  #forceDelete(resource: ApiResource, object: StoredObject): void {
    const { client } = this.#deps;
    const { finalizers = [], ...metadata } = object.metadata;
    const freed = finalizers.length > 0 ? client.update(resource, { ...object, metadata }) : object;
    client.delete(resource, freed, { gracePeriodSeconds: 0 });
  }
}

/** The remaining objects of one resource in a namespace that is being deleted. */
export interface RemainingObjects {
  readonly resource: ApiResource;
  readonly objects: readonly StoredObject[];
}

/** The maximum number of objects listed by name; further ones are only counted. */
const maxNamed = 5;

/**
 * Sets the deletion conditions of the namespace; an unchanged condition keeps its transition time.
 */
function terminationConditions(
  before: readonly NamespaceCondition[],
  remainders: readonly RemainingObjects[],
  failures: readonly string[],
  now: string,
): readonly NamespaceCondition[] {
  const reported = [
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
    ...remainingConditions(remainders),
  ];
  const others = before.filter(({ type }) => !reported.some((one) => one.type === type));
  return [...others, ...reported.map((one) => withTime(one, before, now))];
}

type NewCondition = Omit<NamespaceCondition, 'lastTransitionTime'>;

/** The conditions about objects that still exist, and about finalizers that block their deletion. */
function remainingConditions(remainders: readonly RemainingObjects[]): readonly NewCondition[] {
  return [
    remainders.length === 0
      ? condition('NamespaceContentRemaining', [], 'ContentRemoved', 'All content successfully removed')
      : condition('NamespaceContentRemaining', [remainingMessage(remainders)], 'SomeResourcesRemain', ''),
    objectsByFinalizer(remainders).length === 0
      ? condition(
          'NamespaceFinalizersRemaining',
          [],
          'ContentHasNoFinalizers',
          'All content-preserving finalizers finished',
        )
      : condition(
          'NamespaceFinalizersRemaining',
          [finalizersMessage(remainders)],
          'SomeFinalizersRemain',
          '',
        ),
  ];
}

/** Creates a condition that is True if there is an error message. */
function condition(
  type: string,
  problems: readonly string[],
  reason: string,
  resolvedMessage: string,
): NewCondition {
  return {
    type,
    status: problems.length > 0 ? 'True' : 'False',
    reason,
    message: problems[0] ?? resolvedMessage,
  };
}

function withTime(
  reported: NewCondition,
  before: readonly NamespaceCondition[],
  now: string,
): NamespaceCondition {
  const known = before.find(({ type }) => type === reported.type);
  const isSame = known?.status === reported.status;
  return { ...reported, lastTransitionTime: isSame ? (known.lastTransitionTime ?? now) : now };
}

function remainingMessage(remainders: readonly RemainingObjects[]): string {
  const each = remainders.map(
    ({ resource: { plural, group }, objects }) =>
      `${plural}.${group} has ${objects.length} resource instances (${named(objects)})`,
  );
  return `Some resources are remaining: ${each.toSorted().join(', ')}`;
}

function named(objects: readonly StoredObject[]): string {
  const names = objects.slice(0, maxNamed).map(({ metadata }) => metadata.name);
  const more = objects.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Lists the names of the objects that each finalizer blocks. */
function objectsByFinalizer(
  remainders: readonly RemainingObjects[],
): readonly (readonly [string, readonly string[]])[] {
  const found = new Map<string, string[]>();
  for (const { resource, objects } of remainders)
    for (const { metadata } of objects)
      for (const finalizer of metadata.finalizers ?? []) {
        const name = `${groupQualified(resource.plural, resource.group)}/${metadata.name}`;
        found.set(finalizer, [...(found.get(finalizer) ?? []), name]);
      }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function finalizersMessage(remainders: readonly RemainingObjects[]): string {
  const each = objectsByFinalizer(remainders).map(([finalizer, names]) => {
    const shown = names.slice(0, maxNamed).join(', ');
    return `${finalizer} in ${names.length} resource instances (${shown}${names.length > maxNamed ? ', …' : ''})`;
  });
  return `Some content in the namespace has finalizers remaining: ${each.join(', ')}`;
}

function sameConditions(a: readonly NamespaceCondition[], b: readonly NamespaceCondition[]): boolean {
  return sameValue(a, b);
}
