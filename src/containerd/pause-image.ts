import { type Architecture, buildImage } from './oci-image.ts';
import { pauseProgram } from './pause-program.ts';

/**
 * The sandbox image of a private containerd. Its tag must change whenever the pause program
 * changes.
 */
export const pauseImageName = 'localhost/kubeling/pause:1';

export function pauseImage(architecture: Architecture): Uint8Array {
  return buildImage({
    name: pauseImageName,
    architecture,
    files: [{ path: 'pause', kind: 'file', mode: 0o755, data: pauseProgram(architecture) }],
    entrypoint: ['/pause'],
    env: { PATH: '/' },
    // The pause process runs as a user other than root, because it only waits.
    user: '65535:65535',
    workingDir: '/',
  });
}
