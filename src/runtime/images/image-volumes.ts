import type { ContainerConfig } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** A volume of a pod whose files come from an image. */
export interface ImageVolume {
  readonly name: string;
  readonly reference: string;
  readonly pullPolicy: string | undefined;
}

/** Those the container mounts, each once: what only others mount is none of its business. */
export function imageVolumesOf({ spec }: Pod, container: Container): readonly ImageVolume[] {
  const mounted = new Set((container.volumeMounts ?? []).map(({ name }) => name));
  return (spec.volumes ?? []).flatMap(({ name, image }) =>
    image === undefined || !mounted.has(name)
      ? []
      : [{ name, reference: image.reference ?? '', pullPolicy: image.pullPolicy }],
  );
}

/** Runtimes without image volumes do not know the field and stumble over the path that is missing beside it. */
export function explainRefusal(error: unknown, { mounts = [] }: MessageInit<ContainerConfig>): unknown {
  const asked = mounts.find(({ image }) => image !== undefined);
  if (asked === undefined || !(error instanceof KubelingError)) return error;
  const why = `the container mounts an image at ${asked.containerPath}, which takes containerd 2.1 or CRI-O 1.31`;
  return new KubelingError(error.code, `${error.message} (${why})`, { cause: error });
}
