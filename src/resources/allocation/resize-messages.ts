import type { Container } from '../../kinds/index.ts';
import { initContainersOf, type Pod } from '../../pods/index.ts';

/** The text of an event about a resize: what it is about in words, then the amounts as JSON. */
export function resizeMessage(
  words: string,
  pod: Pod,
  generation: number | undefined,
  error?: string,
): string {
  const init = initContainersOf(pod).map(summary);
  const about = {
    ...(init.length > 0 && { initContainers: init }),
    containers: pod.spec.containers.map(summary),
    generation: generation ?? 0,
    ...(error !== undefined && error !== '' && { error }),
  };
  return `${words}: ${JSON.stringify(about)}`;
}

function summary({ name, resources = {} }: Container): object {
  const { limits, requests, claims } = resources;
  return {
    name,
    resources: { ...(limits && { limits }), ...(requests && { requests }), ...(claims && { claims }) },
  };
}
