import { apiVersionOf, type JsonObject } from '../../api/index.ts';
import type { OwnerReference, PersistentVolumeClaimTemplate, Volume } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import { annotations as podAnnotations } from '../../pods/index.ts';
import type { ApiLoop, StoredObject, World } from '../api/index.ts';
import { persistentVolumeClaims as claims, pods } from '../kinds/resources.ts';
import type { ServerHand } from './keyed-controller.ts';
import { keyedLoop } from './keyed-controller.ts';

export interface EphemeralClaimsDeps {
  readonly world: World;
  readonly hand: ServerHand;
  readonly log: Logger;
}

/** Makes the claims that pods describe in their volumes, and takes them away with their pods. */
export function ephemeralClaimsLoop(deps: EphemeralClaimsDeps): ApiLoop {
  const { world, log } = deps;
  return keyedLoop({
    name: 'ephemeral-claims',
    world,
    log,
    first: () => [
      ...world.objects.all(pods).flatMap(keysOfPod),
      ...world.objects.all(claims).flatMap(keysOfClaim),
    ],
    keysOf: ({ type, resource, object }) => {
      if (resource.plural === pods.plural) return keysOfPod(object);
      return resource.plural === claims.plural && type === 'DELETED' ? keysOfClaim(object) : [];
    },
    look: (key) => {
      settle(deps, key);
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

function settle({ world, hand }: EphemeralClaimsDeps, key: string): void {
  const [namespace = '', name = ''] = key.split('/');
  const pod = world.objects.get(pods, namespace, name);
  for (const claim of world.objects.all(claims, namespace)) {
    const owner = podOwnerOf(claim);
    const isLeft = owner?.name === name && owner.uid !== pod?.metadata.uid;
    if (isLeft && claim.metadata.deletionTimestamp === undefined) hand.delete(claims, claim);
  }
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
  // Of one of the same name that is on its way out the next look sees the end.
  for (const [volume, template] of templatesOf(pod))
    hand.ensure(claims, namespace, claimFor(pod, volume, template));
}

/** What a node shows of its static pods is no pod that anything is made for. */
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

/** The pod a claim was made for. */
export function podOwnerOf({ metadata }: StoredObject): OwnerReference | undefined {
  const owners = (metadata.ownerReferences ?? []) as unknown as readonly OwnerReference[];
  return owners.find(({ kind, controller }) => kind === pods.kind && controller === true);
}
