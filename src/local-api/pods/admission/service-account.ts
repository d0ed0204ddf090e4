import { apiResources } from '../../../api/index.ts';
import type { Container, PodSpec, ServiceAccount, Volume } from '../../../kinds/index.ts';
import { type Random, randomInt } from '../../../lib/index.ts';
import {
  referencesOf,
  referencesOnlyManifestObjects,
  type StoredObject,
  type WriteContext,
} from '../../api/index.ts';
import { isMirror, podForbidden, typed, withFields, withSpec } from '../pod-object.ts';

const defaultAccount = 'default';

/** Sets the service account and mounts its token. */
export function admitServiceAccount(pod: StoredObject, write: WriteContext): StoredObject {
  if (isMirror(pod)) return admitMirrorPod(pod, write);
  const { spec } = typed(pod);
  const name = spec.serviceAccountName || defaultAccount;
  const account = accountOf(pod, name, write);
  const named: PodSpec = { ...spec, serviceAccountName: name, serviceAccount: name };
  const mounted = isMounted(account, spec) ? withToken(named, write.random) : named;
  const secrets = account.imagePullSecrets ?? [];
  const isLacking = (spec.imagePullSecrets ?? []).length === 0 && secrets.length > 0;
  const imagePullSecrets = isLacking ? secrets : mounted.imagePullSecrets;
  return withSpec(pod, withFields(mounted, { imagePullSecrets }));
}

function accountOf(pod: StoredObject, name: string, { objects }: WriteContext): ServiceAccount {
  const namespace = pod.metadata.namespace;
  const found = objects.get(apiResources.serviceAccounts, namespace, name);
  if (found !== undefined) return found as unknown as ServiceAccount;
  // Every namespace gets a default service account, but only after the creation of the namespace: a
  // pod may be created before its service account.
  if (name === defaultAccount) return {};
  throw podForbidden(
    pod,
    `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`,
  );
}

/**
 * A mirror pod must not reference service accounts or other API objects; secrets that come from
 * manifests are allowed.
 */
function admitMirrorPod(pod: StoredObject, { objects }: WriteContext): StoredObject {
  const { spec } = typed(pod);
  if (spec.serviceAccountName) throw podForbidden(pod, 'a mirror pod may not reference service accounts');
  if (referencesOf(pod).secrets.size > 0 && !referencesOnlyManifestObjects(pod, objects))
    throw podForbidden(pod, 'a mirror pod may not reference secrets');
  const sources = (spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []);
  if (sources.some(({ serviceAccountToken }) => serviceAccountToken !== undefined))
    throw podForbidden(pod, 'a mirror pod may not use ServiceAccountToken volume projections');
  return pod;
}

/** automountServiceAccountToken of the pod overrides that of its service account. */
function isMounted(account: ServiceAccount, spec: PodSpec): boolean {
  return spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
}

const prefix = 'kube-api-access-';
const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount';

function withToken(spec: PodSpec, random: Random): PodSpec {
  const known = spec.volumes?.find(({ name }) => name.startsWith(prefix));
  const name = known?.name ?? `${prefix}${suffix(random)}`;
  const all = [...spec.containers, ...(spec.initContainers ?? [])];
  if (!all.some(needsToken)) return spec;
  return withFields(spec, {
    containers: spec.containers.map((one) => withMount(one, name)),
    initContainers: spec.initContainers?.map((one) => withMount(one, name)),
    volumes: known === undefined ? [...(spec.volumes ?? []), tokenVolume(name)] : spec.volumes,
  });
}

function needsToken({ volumeMounts = [] }: Container): boolean {
  return !volumeMounts.some((mount) => mount.mountPath === mountPath);
}

function withMount(container: Container, name: string): Container {
  if (!needsToken(container)) return container;
  const mount = { name, readOnly: true, mountPath };
  return { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] };
}

const letters = 'bcdfghjklmnpqrstvwxz2456789';

function suffix(random: Random): string {
  return Array.from({ length: 5 }, () => letters[randomInt(random, letters.length)]).join('');
}

/**
 * The lifetime of injected tokens in seconds: kube-apiserver recognizes them by this unusual
 * number.
 */
const tokenSeconds = 3607;

function tokenVolume(name: string): Volume {
  const fieldRef = { apiVersion: 'v1', fieldPath: 'metadata.namespace' };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: tokenSeconds, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef }] } },
      ],
      defaultMode: 0o644,
    },
  };
}
