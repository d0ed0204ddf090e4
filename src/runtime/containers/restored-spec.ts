import type { Container } from '../../kinds/index.ts';
import type { ObservedContainer, ObservedPod, Pod } from '../../pods/index.ts';
import { readContainerAnnotations } from './container-annotations.ts';

/**
 * A pod as far as its containers in the runtime still tell of it, for stopping it properly when nobody has its spec
 * any more: names, grace periods, ports and hooks.
 */
export function restorePod(observed: ObservedPod): Pod {
  const known = observed.containers.map(({ annotations }) => readContainerAnnotations(annotations));
  const deletionGrace = known.find(({ deletionGraceSeconds }) => deletionGraceSeconds !== undefined);
  const grace = known.find(({ terminationGraceSeconds }) => terminationGraceSeconds !== undefined);
  const names = [...new Set(observed.containers.map(({ name }) => name))];
  return {
    metadata: {
      name: observed.name,
      namespace: observed.namespace,
      uid: observed.uid,
      deletionGracePeriodSeconds: deletionGrace?.deletionGraceSeconds,
    },
    spec: {
      terminationGracePeriodSeconds: grace?.terminationGraceSeconds,
      containers: names.flatMap((name) => {
        const newest = observed.containers.find((container) => container.name === name);
        return newest === undefined ? [] : [restoreContainer(newest)];
      }),
    },
    status: {},
  };
}

/** As much as a kill may know of a container besides its name. */
export type RememberedContainer = Pick<ObservedContainer, 'name'> &
  Partial<Pick<ObservedContainer, 'image' | 'annotations'>>;

export function restoreContainer(observed: RememberedContainer): Container {
  const { terminationMessagePath, terminationMessagePolicy, preStop, ports } = readContainerAnnotations(
    observed.annotations ?? {},
  );
  return {
    name: observed.name,
    image: observed.image,
    terminationMessagePath,
    terminationMessagePolicy,
    ports,
    lifecycle: preStop === undefined ? undefined : { preStop },
  };
}
