import { KubelingError } from '../lib/index.ts';

export interface ContainerdVersion {
  readonly major: number;
  readonly minor: number;
  /**
   * The containerd version as the program prints it, without the leading v: "1.6.20~ds1", "2.0.4".
   */
  readonly text: string;
}

/** Parses the output of `containerd --version`: name, repository, version and revision. */
export function parseContainerdVersion(output: string): ContainerdVersion {
  for (const word of output.trim().split(/\s+/).slice(1)) {
    const match = /^v?((\d+)\.(\d+)\.\d\S*)$/.exec(word);
    if (match !== null) return { major: Number(match[2]), minor: Number(match[3]), text: String(match[1]) };
  }
  throw new KubelingError(
    'CONTAINERD_VERSION',
    `Cannot determine the version of containerd as the output of --version must contain a version like v1.7.0: it printed ${JSON.stringify(output.trim())}`,
  );
}

/** Throws for a containerd version for which kubeling cannot write a config file. */
export function checkSupported(version: ContainerdVersion): void {
  const isOld = version.major < 1 || (version.major === 1 && version.minor < 6);
  if (!isOld && version.major <= 2) return;
  throw new KubelingError(
    'CONTAINERD_VERSION',
    `Cannot run a private containerd as its version must be 1.6, 1.7 or 2.x: found ${version.text}`,
  );
}
