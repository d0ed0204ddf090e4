import type { Container, FieldPath, VolumeDevice, VolumeMount, VolumeSource } from '../../kinds/index.ts';
import { descendingPath, pathWithoutBacksteps } from './names.ts';
import { checkChoice, checkPresent, checkText, type Report, refuse, repeated, wrong } from './report.ts';

/** The volumes of the pod that are sound, by name. */
export type KnownVolumes = ReadonlyMap<string, VolumeSource>;

export function checkMounts(
  report: Report,
  path: FieldPath,
  container: Container,
  volumes: KnownVolumes,
): void {
  const devices = container.volumeDevices ?? [];
  const paths = new Set<string>();
  container.volumeMounts?.forEach((mount, index) => {
    const at = path.index(index);
    checkPresent(report, at.child('name'), mount.name);
    if (mount.name && !volumes.has(mount.name))
      wrong(report, at.child('name'), mount.name, 'be the name of a volume of the pod');
    checkPresent(report, at.child('mountPath'), mount.mountPath);
    if (paths.has(mount.mountPath)) repeated(report, at.child('mountPath'), mount.mountPath);
    paths.add(mount.mountPath);
    if (devices.some(({ name }) => name === mount.name))
      refuse(report, at.child('name'), 'in volumeDevices too');
    if (devices.some(({ devicePath }) => devicePath === mount.mountPath))
      refuse(report, at.child('mountPath'), 'in volumeDevices too');
    checkMountOptions(
      report,
      at,
      mount,
      container.securityContext?.privileged === true ? 'privileged' : 'plain',
    );
  });
}

function checkMountOptions(
  report: Report,
  path: FieldPath,
  mount: VolumeMount,
  container: 'privileged' | 'plain',
): void {
  checkText(report, path.child('subPath'), mount.subPath, descendingPath);
  checkText(report, path.child('subPathExpr'), mount.subPathExpr, descendingPath);
  if (mount.subPath && mount.subPathExpr) refuse(report, path.child('subPathExpr'), 'beside subPath');
  const propagation = path.child('mountPropagation');
  checkChoice(report, propagation, mount.mountPropagation, {
    of: ['None', 'HostToContainer', 'Bidirectional'],
    absent: 'allowed',
  });
  if (mount.mountPropagation === 'Bidirectional' && container === 'plain')
    report(propagation, 'must not be Bidirectional unless the container is privileged');
  checkRecursiveReadOnly(report, path.child('recursiveReadOnly'), mount);
}

function checkRecursiveReadOnly(report: Report, path: FieldPath, mount: VolumeMount): void {
  const wanted = mount.recursiveReadOnly;
  checkChoice(report, path, wanted, { of: ['Disabled', 'IfPossible', 'Enabled'], absent: 'allowed' });
  if (wanted !== 'IfPossible' && wanted !== 'Enabled') return;
  if (mount.readOnly !== true) refuse(report, path, 'unless readOnly is true');
  if ((mount.mountPropagation ?? 'None') !== 'None') refuse(report, path, 'unless mountPropagation is None');
}

export function checkDevices(
  report: Report,
  path: FieldPath,
  container: Container,
  volumes: KnownVolumes,
): void {
  const mounts = container.volumeMounts ?? [];
  const names = new Set<string>();
  const paths = new Set<string>();
  container.volumeDevices?.forEach((device, index) => {
    const at = path.index(index);
    checkDevice(report, at, device, volumes.get(device.name));
    if (device.name && names.has(device.name)) repeated(report, at.child('name'), device.name);
    if (paths.has(device.devicePath)) repeated(report, at.child('devicePath'), device.devicePath);
    names.add(device.name);
    paths.add(device.devicePath);
    if (mounts.some(({ name }) => name === device.name))
      refuse(report, at.child('name'), 'in volumeMounts too');
    if (mounts.some(({ mountPath }) => mountPath === device.devicePath))
      refuse(report, at.child('devicePath'), 'in volumeMounts too');
  });
}

/** Only claims can be had as a raw device. */
function checkDevice(
  report: Report,
  path: FieldPath,
  device: VolumeDevice,
  source: VolumeSource | undefined,
): void {
  checkPresent(report, path.child('name'), device.name);
  checkPresent(report, path.child('devicePath'), device.devicePath);
  checkText(report, path.child('devicePath'), device.devicePath, pathWithoutBacksteps);
  if (source === undefined) {
    if (device.name) wrong(report, path.child('name'), device.name, 'be the name of a volume of the pod');
  } else if (!source.persistentVolumeClaim && !source.ephemeral)
    wrong(report, path.child('name'), device.name, 'be a persistentVolumeClaim or ephemeral volume');
}
