import {
  type Container,
  type EnvFromSource,
  FieldPath,
  type PodSpec,
  type Volume,
  type VolumeProjection,
} from '../../kinds/index.ts';
import type { FieldProblem, PodRules } from '../rules.ts';

interface Reference {
  readonly field: FieldPath;
  /** The resource name in the API, in the plural, such as `secrets`. */
  readonly resource: string;
}

const specPath = FieldPath.root.child('spec');

/** Finds references of a static pod to objects in the API server. */
export function refusedReferences(spec: PodSpec, rules: PodRules): readonly FieldProblem[] {
  if (rules.apiReferences === 'allowed') return [];
  const all = referencesOf(spec);
  const refused = rules.enabled('PreventStaticPodAPIReferences') ? all : all.filter(isNeverPossible);
  return refused.map(({ field, resource }) => ({
    field,
    named: field,
    reason: 'FieldValueForbidden',
    message: `static pods may not reference ${resource}`,
  }));
}

/**
 * Whether a static pod can never use the referenced object: resource claims and trust bundles exist
 * for API pods only.
 */
function isNeverPossible({ resource }: Reference): boolean {
  return resource === 'clustertrustbundles' || resource === 'resourceclaims';
}

function referencesOf(spec: PodSpec): readonly Reference[] {
  const { serviceAccountName, imagePullSecrets = [], resourceClaims = [], volumes = [] } = spec;
  return [
    ...one(serviceAccountName, specPath.child('serviceAccountName'), 'serviceaccounts'),
    ...imagePullSecrets.flatMap(({ name }, index) =>
      one(name, specPath.child('imagePullSecrets').index(index), 'secrets'),
    ),
    ...(['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
      (spec[list] ?? []).flatMap((container, index) =>
        ofContainer(container, specPath.child(list).index(index)),
      ),
    ),
    ...resourceClaims.map((_, index) => ({
      field: specPath.child('resourceClaims').index(index),
      resource: 'resourceclaims',
    })),
    ...volumes.flatMap((volume, index) => ofVolume(volume, specPath.child('volumes').index(index))),
  ];
}

function one(what: unknown, field: FieldPath, resource: string): readonly Reference[] {
  return what ? [{ field, resource }] : [];
}

function ofContainer(container: Container, path: FieldPath): readonly Reference[] {
  const env = (container.env ?? []).flatMap(({ valueFrom }, index) => {
    const at = path.child('env').index(index).child('valueFrom');
    return [
      ...one(valueFrom?.secretKeyRef, at.child('secretKeyRef'), 'secrets'),
      ...one(valueFrom?.configMapKeyRef, at.child('configMapKeyRef'), 'configmaps'),
    ];
  });
  const from = (container.envFrom ?? []).flatMap((source, index) =>
    ofEnvFrom(source, path.child('envFrom').index(index)),
  );
  return [...env, ...from];
}

function ofEnvFrom(source: EnvFromSource, path: FieldPath): readonly Reference[] {
  return [
    ...one(source.secretRef, path.child('secretRef'), 'secrets'),
    ...one(source.configMapRef, path.child('configMapRef'), 'configmaps'),
  ];
}

/** Volume types that always refer to an API object. */
const volumeResources = {
  configMap: 'configmaps (via configmap volumes)',
  secret: 'secrets (via secret volumes)',
  csi: 'csidrivers (via CSI volumes)',
  glusterfs: 'endpoints (via glusterFS volumes)',
  persistentVolumeClaim: 'persistentvolumeclaims',
  ephemeral: 'persistentvolumeclaims (via ephemeral volumes)',
  azureFile: 'secrets (via azureFile volumes)',
} as const satisfies Partial<Record<keyof Volume, string>>;

const projectionResources = {
  configMap: 'configmaps (via projected volumes)',
  secret: 'secrets (via projected volumes)',
  serviceAccountToken: 'serviceaccounts (via projected volumes)',
  clusterTrustBundle: 'clustertrustbundles',
  podCertificate: 'podcertificates',
} as const satisfies Partial<Record<keyof VolumeProjection, string>>;

/** Volume types that may refer to a secret. */
const withSecretRef = ['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'] as const;

function ofVolume(volume: Volume, path: FieldPath): readonly Reference[] {
  const own = Object.entries(volumeResources).flatMap(([kind, resource]) =>
    one(volume[kind as keyof Volume], path.child(kind), resource),
  );
  const secrets = withSecretRef.flatMap((kind) =>
    one(volume[kind]?.secretRef?.name, path.child(kind, 'secretRef'), 'secrets'),
  );
  const projected = (volume.projected?.sources ?? []).flatMap((source, index) =>
    Object.entries(projectionResources).flatMap(([kind, resource]) =>
      one(
        source[kind as keyof VolumeProjection],
        path.child('projected', 'sources').index(index).child(kind),
        resource,
      ),
    ),
  );
  return [...own, ...secrets, ...projected];
}
