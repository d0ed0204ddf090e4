import type { Pod } from '../../pods/index.ts';

/** Of a ResourceClaim of resource.k8s.io/v1, what a node looks at. */
export interface ResourceClaim {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly ownerReferences?: readonly { readonly uid: string; readonly controller?: boolean }[];
  };
  readonly status?: {
    readonly reservedFor?: readonly { readonly uid: string }[];
    readonly allocation?: {
      readonly devices?: { readonly results?: readonly { readonly driver: string }[] };
    };
  };
}

/** A claim of the pod, by what its containers call it. */
export interface ClaimOfPod {
  readonly calledBy: string;
  readonly name: string;
  /** Made for this pod alone, from a template. */
  readonly isOwn: boolean;
}

/** Those it has; one that a template needed none for is left out. Throws for one that is still to be made. */
export function claimsOf({ metadata, spec, status }: Pod): readonly ClaimOfPod[] {
  return (spec.resourceClaims ?? []).flatMap((claim): readonly ClaimOfPod[] => {
    const { name: calledBy, resourceClaimName: name } = claim;
    if (name !== undefined) return [{ calledBy, name, isOwn: false }];
    const made = (status.resourceClaimStatuses ?? []).find((one) => one.name === calledBy);
    if (made === undefined)
      throw new Error(`pod "${metadata.namespace}/${metadata.name}": ResourceClaim not created yet`);
    return made.resourceClaimName === undefined
      ? []
      : [{ calledBy, name: made.resourceClaimName, isOwn: true }];
  });
}

/** Throws when the claim is not for this pod to use. */
export function checkClaim(pod: Pod, { isOwn }: ClaimOfPod, claim: ResourceClaim): void {
  const { uid, name, namespace } = pod.metadata;
  const { metadata, status } = claim;
  const isController = (metadata.ownerReferences ?? []).some(
    (owner) => owner.controller === true && owner.uid === uid,
  );
  if (isOwn && !isController) {
    const which = `${metadata.namespace}/${metadata.name}`;
    throw new Error(`ResourceClaim ${which} was not created for Pod ${namespace}/${name} (Pod is not owner)`);
  }
  if ((status?.reservedFor ?? []).some((user) => user.uid === uid)) return;
  throw new Error(
    `pod ${name} (${uid}) is not allowed to use ResourceClaim ${metadata.name} (${metadata.uid})`,
  );
}

/** All who have something for the claim. Throws for a claim that nothing was given to. */
export function driversOf({ metadata, status }: ResourceClaim): readonly string[] {
  if (status?.allocation === undefined)
    throw new Error(`ResourceClaim ${metadata.name}: claim is not allocated`);
  return [...new Set((status.allocation.devices?.results ?? []).map(({ driver }) => driver))];
}
