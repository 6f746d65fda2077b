package cli

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it."`
	List   keysListCmd   `cmd:"" help:"List the keys without their secrets."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it within one second."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key with a new one and print the new one."`
}
