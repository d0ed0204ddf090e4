import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The programs of a control plane, each by its path. */
export interface ClusterPrograms {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
  readonly scheduler: string;
  readonly kubectl: string;
}

/** The folder of the programs; empty when nobody named one. */
export function clusterAssets(): string {
  return process.env['KUBEBUILDER_ASSETS'] ?? '';
}

/** Why tests that need a real cluster are skipped; false when they are not. */
export function noCluster(): string | false {
  if (clusterAssets() !== '') return false;
  return 'KUBEBUILDER_ASSETS must name a folder with kube-apiserver, kube-controller-manager and kube-scheduler';
}

/** A kubelet of the reference, to be in kubeling's place. */
export function goKubelet(): string {
  return join(clusterAssets(), 'kubelet');
}

/** Why tests that need one are skipped; false when they are not. */
export function noGoKubelet(): string | false {
  if (clusterAssets() === '')
    return 'KUBEBUILDER_ASSETS must name a folder with kubelet, a Go kubelet of v1.36';
  return isExecutable(goKubelet()) ? false : `${goKubelet()} must be a Go kubelet of v1.36`;
}

/** Throws with all that are missing and where they were looked for. */
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

/** Why lists cannot be had as watches: the API server asks etcd how far it is, which older ones do not tell. */
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

/** Of the programs where there are some, else the one on the PATH. */
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
