import { apiVersionOf, type JsonObject } from '../../api/index.ts';
import type { OwnerReference, PersistentVolumeClaimTemplate, Volume } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import { annotations as podAnnotations } from '../../pods/index.ts';
import type { Controller, ServerContext, StoredObject } from '../api/index.ts';
import { persistentVolumeClaims as claims, pods } from '../kinds/resources.ts';
import type { ControllerClient } from './keyed-controller.ts';
import { keyedController } from './keyed-controller.ts';

export interface EphemeralClaimControllerDeps {
  readonly context: ServerContext;
  readonly client: ControllerClient;
  readonly log: Logger;
}

/** Creates the claims of generic ephemeral volumes and deletes them after their pod. */
export function ephemeralClaimController(deps: EphemeralClaimControllerDeps): Controller {
  const { context, log } = deps;
  return keyedController({
    name: 'ephemeral-claims',
    context: context,
    log,
    initialKeys: () => [
      ...context.objects.all(pods).flatMap(keysOfPod),
      ...context.objects.all(claims).flatMap(keysOfClaim),
    ],
    keysFor: ({ type, resource, object }) => {
      if (resource.plural === pods.plural) return keysOfPod(object);
      return resource.plural === claims.plural && type === 'DELETED' ? keysOfClaim(object) : [];
    },
    reconcile: (key) => {
      reconcilePodClaims(deps, key);
      return undefined;
    },
  });
}

function keysOfPod(pod: StoredObject): readonly string[] {
  const { namespace = '', name } = pod.metadata;
  return templatesOf(pod).length > 0 ? [`${namespace}/${name}`] : [];
}

function keysOfClaim(claim: StoredObject): readonly string[] {
  const owner = podOwnerOf(claim);
  return owner === undefined ? [] : [`${claim.metadata.namespace ?? ''}/${owner.name}`];
}

function reconcilePodClaims({ context, client }: EphemeralClaimControllerDeps, key: string): void {
  const [namespace = '', name = ''] = key.split('/');
  const pod = context.objects.get(pods, namespace, name);
  for (const claim of context.objects.all(claims, namespace)) {
    const owner = podOwnerOf(claim);
    const isOrphaned = owner?.name === name && owner.uid !== pod?.metadata.uid;
    if (isOrphaned && claim.metadata.deletionTimestamp === undefined) client.delete(claims, claim);
  }
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
  // If a previous claim of the same name is still being deleted, its removal triggers another
  // reconcile.
  for (const [volume, template] of templatesOf(pod))
    client.ensure(claims, namespace, claimFor(pod, volume, template));
}

/** Mirror pods get no claims for their ephemeral volumes. */
function templatesOf({
  spec,
  metadata,
}: StoredObject): readonly (readonly [string, PersistentVolumeClaimTemplate])[] {
  if (metadata.annotations?.[podAnnotations.mirror] !== undefined) return [];
  return ((spec?.['volumes'] ?? []) as readonly Volume[]).flatMap(({ name, ephemeral }) => {
    const template = ephemeral?.volumeClaimTemplate;
    return template === undefined ? [] : [[name, template] as const];
  });
}

function claimFor(pod: StoredObject, volume: string, { metadata, spec }: PersistentVolumeClaimTemplate) {
  const { name, uid } = pod.metadata;
  const owner = {
    apiVersion: apiVersionOf(pods),
    kind: pods.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  const { labels, annotations } = metadata ?? {};
  return {
    apiVersion: apiVersionOf(claims),
    kind: claims.kind,
    metadata: {
      name: `${name}-${volume}`,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [owner],
    },
    spec: spec as unknown as JsonObject,
  };
}

/** The pod that is the controller owner of a claim. */
export function podOwnerOf({ metadata }: StoredObject): OwnerReference | undefined {
  const owners = (metadata.ownerReferences ?? []) as unknown as readonly OwnerReference[];
  return owners.find(({ kind, controller }) => kind === pods.kind && controller === true);
}
