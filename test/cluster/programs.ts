import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The paths of the control plane's programs. */
export interface ClusterPrograms {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
  readonly scheduler: string;
  readonly kubectl: string;
}

/** The directory of the programs; empty if none is configured. */
export function clusterAssets(): string {
  return process.env['KUBEBUILDER_ASSETS'] ?? '';
}

/** Returns why tests that need a real cluster are skipped; false if they run. */
export function noCluster(): string | false {
  if (clusterAssets() !== '') return false;
  return 'KUBEBUILDER_ASSETS must name a folder with kube-apiserver, kube-controller-manager and kube-scheduler';
}

/** The path of the Go kubelet that runs instead of kubeling in comparisons. */
export function goKubelet(): string {
  return join(clusterAssets(), 'kubelet');
}

/** Returns why tests that need the Go kubelet are skipped; false if they run. */
export function noGoKubelet(): string | false {
  if (clusterAssets() === '')
    return 'KUBEBUILDER_ASSETS must name a folder with kubelet, a Go kubelet of v1.36';
  return isExecutable(goKubelet()) ? false : `${goKubelet()} must be a Go kubelet of v1.36`;
}

/**
 * Returns the paths of the programs. Throws with all missing programs and the searched directories.
 */
export function findClusterPrograms(assetsDir: string): ClusterPrograms {
  const path = pathDirs();
  const missing: string[] = [];
  const find = (name: string, dirs: readonly string[]) => {
    const found = dirs.map((dir) => join(dir, name)).find(isExecutable);
    if (found === undefined) missing.push(`${name} (looked for in ${dirs.join(', ')})`);
    return found ?? '';
  };
  const programs = {
    etcd: find('etcd', [assetsDir, ...path, '/usr/bin']),
    apiServer: find('kube-apiserver', [assetsDir]),
    controllerManager: find('kube-controller-manager', [assetsDir]),
    scheduler: find('kube-scheduler', [assetsDir]),
    kubectl: find('kubectl', [assetsDir, ...path]),
  };
  if (missing.length > 0) throw new Error(`Cannot find programs of a control plane: ${missing.join('; ')}`);
  return programs;
}

/**
 * Returns why lists cannot be streamed as watches: the API server requires progress notifications,
 * which older versions of etcd do not support.
 */
export function withoutStreamedLists(): string | false {
  const missing = noCluster();
  if (missing !== false) return missing;
  const { etcd } = findClusterPrograms(clusterAssets());
  const [, major, minor] =
    /etcd Version: (\d+)\.(\d+)/.exec(execFileSync(etcd, ['--version'], { encoding: 'utf8' })) ?? [];
  return Number(major) > 3 || Number(minor) >= 5
    ? false
    : `needs etcd 3.5 or newer, ${etcd} is ${major}.${minor}`;
}

/** Returns the kubectl among the cluster's programs, or else the one on the PATH. */
export function findKubectl(): string {
  const dirs = [clusterAssets(), ...pathDirs()].filter((dir) => dir !== '');
  const found = dirs.map((dir) => join(dir, 'kubectl')).find(isExecutable);
  if (found === undefined) throw new Error(`Cannot find kubectl: looked for in ${dirs.join(', ')}`);
  return found;
}

function pathDirs(): readonly string[] {
  return (process.env['PATH'] ?? '').split(delimiter).filter((dir) => dir !== '');
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
