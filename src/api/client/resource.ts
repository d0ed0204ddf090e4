/** A resource as it appears in API paths. */
export interface ApiResource {
  /** The API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly scope: 'namespace' | 'cluster';
}

function core(plural: string, kind: string, scope: ApiResource['scope'] = 'namespace'): ApiResource {
  return { group: '', version: 'v1', plural, kind, scope };
}

function cluster(group: string, plural: string, kind: string): ApiResource {
  return { group, version: 'v1', plural, kind, scope: 'cluster' };
}

/** All API resources that a kubelet uses. */
export const apiResources = {
  pods: core('pods', 'Pod'),
  nodes: core('nodes', 'Node', 'cluster'),
  events: core('events', 'Event'),
  services: core('services', 'Service'),
  secrets: core('secrets', 'Secret'),
  configMaps: core('configmaps', 'ConfigMap'),
  serviceAccounts: core('serviceaccounts', 'ServiceAccount'),
  persistentVolumes: core('persistentvolumes', 'PersistentVolume', 'cluster'),
  persistentVolumeClaims: core('persistentvolumeclaims', 'PersistentVolumeClaim'),
  leases: {
    group: 'coordination.k8s.io',
    version: 'v1',
    plural: 'leases',
    kind: 'Lease',
    scope: 'namespace',
  } as ApiResource,
  resourceClaims: {
    group: 'resource.k8s.io',
    version: 'v1',
    plural: 'resourceclaims',
    kind: 'ResourceClaim',
    scope: 'namespace',
  } as ApiResource,
  csiNodes: cluster('storage.k8s.io', 'csinodes', 'CSINode'),
  csiDrivers: cluster('storage.k8s.io', 'csidrivers', 'CSIDriver'),
  volumeAttachments: cluster('storage.k8s.io', 'volumeattachments', 'VolumeAttachment'),
  runtimeClasses: cluster('node.k8s.io', 'runtimeclasses', 'RuntimeClass'),
  certificateSigningRequests: cluster(
    'certificates.k8s.io',
    'certificatesigningrequests',
    'CertificateSigningRequest',
  ),
  tokenReviews: cluster('authentication.k8s.io', 'tokenreviews', 'TokenReview'),
  subjectAccessReviews: cluster('authorization.k8s.io', 'subjectaccessreviews', 'SubjectAccessReview'),
} as const satisfies Record<string, ApiResource>;

/** The location of objects of a resource. */
export interface Collection {
  readonly resource: ApiResource;
  /**
   * The namespace; undefined for cluster-scoped resources and for requests across all namespaces.
   */
  readonly namespace?: string | undefined;
}

/** Identifies one object, or a subresource such as `status` or `token`. */
export interface ObjectRef extends Collection {
  readonly name: string;
  readonly subresource?: string | undefined;
}

export function apiVersionOf({ group, version }: ApiResource): string {
  return group === '' ? version : `${group}/${version}`;
}

export function collectionPath({ resource, namespace }: Collection): string {
  const { group, version, plural } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const inside = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${inside}/${plural}`;
}

export function objectPath(ref: ObjectRef): string {
  const part = ref.subresource === undefined ? '' : `/${ref.subresource}`;
  return `${collectionPath(ref)}/${encodeURIComponent(ref.name)}${part}`;
}
