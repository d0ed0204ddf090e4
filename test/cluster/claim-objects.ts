import { container, pod, podSpec } from './cluster-pods.ts';

export const driverName = 'gpu.test';
/** The extended resource name with which a pod may request a device instead of a claim. */
export const resourceName = 'test.example/gpu';
const group = 'resource.k8s.io/v1';
const claims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';

/** The fields of a ResourceClaim that the tests read. */
export interface Claim {
  readonly metadata: { readonly uid: string };
  readonly status?: { readonly allocation?: object };
}

export function claimPath(name: string): string {
  return `${claims}/${name}`;
}

const requests = (...names: readonly string[]) => ({
  devices: { requests: names.map((name) => ({ name, exactly: { deviceClassName: driverName } })) },
});

export function claim(name: string, ...names: readonly string[]): object {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: group, kind: 'ResourceClaim', metadata, spec: requests(...names) };
}

export function claimTemplate(name: string, ...names: readonly string[]): object {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: group, kind: 'ResourceClaimTemplate', metadata, spec: { spec: requests(...names) } };
}

/** The DeviceClass and ResourceSlice that the driver of a node would publish for these devices. */
export function devicesOn(nodeName: string, ...names: readonly string[]): readonly object[] {
  const pool = { name: nodeName, generation: 1, resourceSliceCount: 1 };
  const spec = { driver: driverName, nodeName, pool, devices: names.map((name) => ({ name })) };
  return [
    {
      apiVersion: group,
      kind: 'DeviceClass',
      metadata: { name: driverName },
      spec: { extendedResourceName: resourceName },
    },
    { apiVersion: group, kind: 'ResourceSlice', metadata: { name: `${nodeName}-devices` }, spec },
  ];
}

/** Builds the status of an allocated claim, as the scheduler would write it. */
export function allocated(allocation: {
  readonly driver: string;
  readonly pool: string;
  /** The allocated device of each request. */
  readonly results: Readonly<Record<string, string>>;
  readonly users: readonly { readonly name: string; readonly uid: string }[];
}): object {
  const { driver, pool, results, users } = allocation;
  const given = Object.entries(results).map(([request, device]) => ({ request, device, driver, pool }));
  return {
    status: {
      allocation: { devices: { results: given } },
      reservedFor: users.map(({ name, uid }) => ({ resource: 'pods', name, uid })),
    },
  };
}

/**
 * Builds a pod with one container that uses the whole claim, or one request of it; `more` contains
 * further fields of the pod spec.
 */
export function podWithClaim(
  name: string,
  from: { readonly resourceClaimName: string } | { readonly resourceClaimTemplateName: string },
  more: object = {},
  request?: string,
): object {
  const uses = [{ name: 'gpu', ...(request !== undefined && { request }) }];
  const spec = podSpec([container('main', { resources: { claims: uses } })], {
    resourceClaims: [{ name: 'gpu', ...from }],
    ...more,
  });
  return pod(name, spec);
}
