/** Descriptions of volumes and their sources. */
export const volumeDescriptions = `
Volume: Something that containers of a pod may mount; it has a name and one source.
 name: What containers call it.
 hostPath: A file or folder of the node.
 emptyDir: A folder that is made with the pod and goes with it.
 gcePersistentDisk: A disk of Google Compute Engine; only by way of its CSI driver.
 awsElasticBlockStore: A disk of Amazon EC2; only by way of its CSI driver.
 gitRepo: A clone of a repository; no longer used.
 secret: The entries of a Secret as files.
 nfs: A folder that a server shares by NFS.
 iscsi: A disk that is reached by iSCSI.
 glusterfs: A volume of Gluster; no longer used.
 persistentVolumeClaim: The volume of a PersistentVolumeClaim.
 rbd: A block device of Ceph; no longer used.
 flexVolume: A volume of a driver that is a program on the node; no longer used.
 cinder: A disk of OpenStack; only by way of its CSI driver.
 cephfs: A file system of Ceph; no longer used.
 flocker: A volume of Flocker; no longer used.
 downwardAPI: Fields of the pod as files.
 fc: A disk that is reached by Fibre Channel.
 azureFile: A file share of Azure; only by way of its CSI driver.
 configMap: The entries of a ConfigMap as files.
 vsphereVolume: A disk of vSphere; only by way of its CSI driver.
 quobyte: A volume of Quobyte; no longer used.
 azureDisk: A disk of Azure; only by way of its CSI driver.
 photonPersistentDisk: A disk of Photon; no longer used.
 projected: Several sources together in one folder.
 portworxVolume: A volume of Portworx; only by way of its CSI driver.
 scaleIO: A volume of ScaleIO; no longer used.
 storageos: A volume of StorageOS; no longer used.
 csi: A volume that a CSI driver makes for this pod.
 ephemeral: A volume with a claim of its own, which goes with the pod.
 image: The files of an image.
HostPathVolumeSource: A file or folder of the node.
 path: Where it is on the node.
 type: What it must be, or what is made if nothing is there.
EmptyDirVolumeSource: A folder that is made with the pod and goes with it.
 medium: Memory for one that is held in memory; empty for a disk.
 sizeLimit: How much it may hold.
SecretVolumeSource: The entries of a Secret as files.
 secretName: The name of the Secret.
 items: Which entries become files, and where; all of them by default.
 defaultMode: The permissions of the files; 0644 by default.
 optional: Whether the Secret or entries of it may be missing.
ConfigMapVolumeSource: The entries of a ConfigMap as files.
 name: The name of the ConfigMap.
 items: Which entries become files, and where; all of them by default.
 defaultMode: The permissions of the files; 0644 by default.
 optional: Whether the ConfigMap or entries of it may be missing.
KeyToPath: An entry that becomes a file.
 key: The name of the entry.
 path: Where the file is in the volume.
 mode: The permissions of the file.
PersistentVolumeClaimVolumeSource: The volume of a claim.
 claimName: The name of the claim, in the namespace of the pod.
DownwardAPIVolumeSource: Fields of the pod as files.
 items: The files.
 defaultMode: The permissions of the files; 0644 by default.
DownwardAPIVolumeFile: A field of the pod as a file.
 path: Where the file is in the volume.
 fieldRef: The field.
 resourceFieldRef: A resource request or limit of a container.
 mode: The permissions of the file.
ProjectedVolumeSource: Several sources together in one folder.
 sources: The sources.
 defaultMode: The permissions of the files; 0644 by default.
VolumeProjection: One source of a folder made of several; only one of these is given.
 secret: Entries of a Secret.
 downwardAPI: Fields of the pod.
 configMap: Entries of a ConfigMap.
 serviceAccountToken: A token of the pod's ServiceAccount, renewed in time.
 clusterTrustBundle: Certificates of authorities.
 podCertificate: A certificate of the pod's own, renewed in time.
SecretProjection: Entries of a Secret.
 name: The name of the Secret.
 items: Which entries become files, and where; all of them by default.
 optional: Whether the Secret or entries of it may be missing.
ConfigMapProjection: Entries of a ConfigMap.
 name: The name of the ConfigMap.
 items: Which entries become files, and where; all of them by default.
 optional: Whether the ConfigMap or entries of it may be missing.
DownwardAPIProjection: Fields of the pod.
 items: The files.
ServiceAccountTokenProjection: A token of the pod's ServiceAccount.
 audience: Whom the token is for; the API server by default.
 expirationSeconds: How long the token holds.
 path: Where the file is in the volume.
ClusterTrustBundleProjection: Certificates of authorities.
 name: The name of the bundle.
 signerName: The signer whose bundles are meant.
 labelSelector: The labels of the bundles that are meant.
 optional: Whether there may be none.
 path: Where the file is in the volume.
CSIVolumeSource: A volume that a CSI driver makes for a pod.
 driver: The name of the driver.
 volumeAttributes: What the driver is told of the volume.
 nodePublishSecretRef: A Secret the driver needs to mount it.
EphemeralVolumeSource: A volume with a claim of its own.
 volumeClaimTemplate: What the claim is made from.
PersistentVolumeClaimTemplate: What a claim is made from.
 metadata: Labels and annotations of the claim.
 spec: The desired state of the claim.
ImageVolumeSource: The files of an image.
 reference: The image.
 pullPolicy: Whether it is fetched each time, only if it is missing, or never.
NFSVolumeSource: A folder that a server shares by NFS.
 server: The host of the server.
 path: The folder on the server.
ISCSIVolumeSource: A disk that is reached by iSCSI.
 targetPortal: The address of the target, with a port if it is not 3260.
 iqn: The name of the target.
 lun: The number of the disk.
 iscsiInterface: The interface used on the node.
 portals: Further addresses of the target.
 chapAuthDiscovery: Whether finding the target needs a password.
 chapAuthSession: Whether using the target needs a password.
 secretRef: A Secret with the passwords.
 initiatorName: The name the node has towards the target.
ISCSIPersistentVolumeSource like ISCSIVolumeSource: A disk that is reached by iSCSI.
FCVolumeSource: A disk that is reached by Fibre Channel.
 targetWWNs: The names of the targets.
 lun: The number of the disk.
 wwids: The names of the disk, instead of targets and number.
LocalVolumeSource: A disk or folder of one node.
 path: Where it is on the node.
GitRepoVolumeSource: A clone of a repository.
 repository: The address of the repository.
 revision: The commit.
 directory: The folder it is put into.
CSIPersistentVolumeSource: A volume of a CSI driver.
 driver: The name of the driver.
 volumeHandle: What the driver calls the volume.
 volumeAttributes: What the driver is told of the volume.
 controllerPublishSecretRef: A Secret the driver needs to attach it.
 nodeStageSecretRef: A Secret the driver needs to make it ready on a node.
 nodePublishSecretRef: A Secret the driver needs to mount it.
 controllerExpandSecretRef: A Secret the driver needs to enlarge it.
 nodeExpandSecretRef: A Secret the driver needs to enlarge it on a node.
PersistentVolume: A piece of storage that outlives pods.
 spec: What the volume is.
 status: Whether somebody has it.
PersistentVolumeSpec like Volume: What a volume is.
 capacity: How much it holds.
 hostPath: A folder of the node, for trying things out.
 local: A disk or folder of one node.
 csi: A volume of a CSI driver.
 accessModes: How it may be used.
 claimRef: The claim it belongs to.
 persistentVolumeReclaimPolicy: What becomes of it when its claim is gone.
 storageClassName: The class it belongs to.
 mountOptions: Options it is mounted with.
 volumeMode: Whether it holds files or is a bare device.
 nodeAffinity: The nodes it can be reached from.
 volumeAttributesClassName: The class its adjustable attributes come from.
VolumeNodeAffinity: The nodes a volume can be reached from.
 required: What such a node must be like.
PersistentVolumeStatus: The observed state of a volume.
 phase: Whether it is free, bound, let go or broken.
 message: A human-readable explanation.
 reason: The reason in one machine-readable word.
 lastPhaseTransitionTime: When the phase last changed.
PersistentVolumeClaim: A claim for storage, and the volume bound to it.
 spec: The requested properties.
 status: What was found.
PersistentVolumeClaimSpec: The requested storage.
 accessModes: How it will be used.
 selector: The labels the volume must have.
 resources: How much it must hold.
 volumeName: The volume, once it is found; or the one that is wanted.
 storageClassName: The class the volume must belong to; empty for none.
 volumeMode: Whether files or a bare device is wanted.
 dataSource: What the volume is filled from, in the same namespace.
 dataSourceRef: What the volume is filled from.
 volumeAttributesClassName: The class whose attributes the volume should have.
VolumeResourceRequirements: The requested amount of storage.
 limits: At most so much.
 requests: At least so much.
PersistentVolumeClaimStatus: What was found for a claim.
 phase: Whether a volume was found.
 accessModes: How the volume may be used.
 capacity: How much it holds.
 conditions: The current conditions of the claim.
 allocatedResources: How large the volume is becoming.
 allocatedResourceStatuses: How far the enlarging has come.
 currentVolumeAttributesClassName: The class whose attributes the volume has.
 modifyVolumeStatus: How far a change of attributes has come.
StorageClass: A sort of storage, and how volumes of it are made.
 provisioner: Who makes them.
 parameters: What the provisioner is told.
 reclaimPolicy: What becomes of its volumes when their claims are gone.
 mountOptions: Options its volumes are mounted with.
 allowVolumeExpansion: Whether its volumes may grow.
 volumeBindingMode: Whether volumes are made at once or when a pod needs them.
 allowedTopologies: Where its volumes may be made.
`;
