import type { Container, EnvVar, PodSpec, Volume } from '../../kinds/index.ts';
import { withFields } from './pod-object.ts';

/** Fields every answer shows, whether there is anything in them or not. */
export function withShownFields(spec: PodSpec): PodSpec {
  return withFields(spec, {
    containers: spec.containers.map(withResources),
    initContainers: spec.initContainers?.map(withResources),
    ephemeralContainers: spec.ephemeralContainers?.map(withResources),
    volumes: spec.volumes?.map(withTemplateMeta),
  });
}

function withResources<T extends Container>(container: T): T {
  const env = container.env?.map(withDivisor);
  return { ...container, resources: container.resources ?? {}, ...(env && { env }) };
}

function withDivisor(variable: EnvVar): EnvVar {
  const resourceFieldRef = variable.valueFrom?.resourceFieldRef;
  if (resourceFieldRef === undefined || resourceFieldRef.divisor !== undefined) return variable;
  return {
    ...variable,
    valueFrom: { ...variable.valueFrom, resourceFieldRef: { ...resourceFieldRef, divisor: '0' } },
  };
}

function withTemplateMeta(volume: Volume): Volume {
  const template = volume.ephemeral?.volumeClaimTemplate;
  const items = volume.downwardAPI?.items?.map((item) =>
    item.resourceFieldRef === undefined || item.resourceFieldRef.divisor !== undefined
      ? item
      : { ...item, resourceFieldRef: { ...item.resourceFieldRef, divisor: '0' } },
  );
  return {
    ...volume,
    ...(items && { downwardAPI: { ...volume.downwardAPI, items } }),
    ...(template && {
      ephemeral: { volumeClaimTemplate: { ...template, metadata: template.metadata ?? {} } },
    }),
  };
}
