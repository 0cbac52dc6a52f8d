(function (name, Base) {
	return { [name]: class extends Base {} }[name];
})
